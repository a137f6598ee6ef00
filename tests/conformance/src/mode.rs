//! Ways to drive a target. Each case runs in each.

use std::fmt;

/// Who moves held work, and what the device is made to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A thread promises to pump.
    Pump,
    /// Nobody does: only the polls of those who wait move anything.
    NoPump,
    /// The device takes one unfinished step at a time, so that core holds the rest. No pump thread.
    Depth1,
    /// The device's lanes do not wait for one another; core waits for them. With a pump thread.
    NoNativeWait,
    /// Under the layers `validation`, which must find nothing, `trace` and `capture`. With a pump thread.
    Layers,
    /// Under the layer `faults`, which shows the ends of different queues in another order. No pump thread.
    Reordered,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 6] =
        [Mode::Pump, Mode::NoPump, Mode::Depth1, Mode::NoNativeWait, Mode::Layers, Mode::Reordered];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Pump => "pump",
            Mode::NoPump => "no-pump",
            Mode::Depth1 => "depth-1",
            Mode::NoNativeWait => "no-native-wait",
            Mode::Layers => "layers",
            Mode::Reordered => "reordered",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Mode> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether a thread pumps.
    pub const fn pumps(self) -> bool {
        matches!(self, Mode::Pump | Mode::NoNativeWait | Mode::Layers)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
