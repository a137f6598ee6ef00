//! Layers over the devices of a runtime: chosen by the program, the command line and `WHARF_LAYERS`, made here, given a
//! clock, threads' numbers, files and stderr.

use crate::{
    error::{Error, ErrorKind, Result},
    near,
    os::{OsLock, now_ns},
};
use std::{
    cell::Cell,
    env,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
};
use wharf_abi::DynDevice;
use wharf_layers::{
    Chain, FaultPlan, Faults, Finding, Layer, Layered, Outside, Sink, Trace, Validation,
    capture::{ByteSink, Capture},
    choice::{self, Choice},
};

/// Variable that chooses layers, after those of the program.
pub(crate) const VARIABLE: &str = "WHARF_LAYERS";
/// Variable that switches layers off by globs of their names, whoever chose them.
pub(crate) const DISABLE_VARIABLE: &str = "WHARF_LAYERS_DISABLE";
/// Findings that are kept and shown; more are counted by nobody.
pub(crate) const FINDINGS_MAX: usize = 1000;
/// Where a trace goes that was given no file.
const TRACE_FILE: &str = "wharf-trace.json";
/// The same of a capture.
const CAPTURE_FILE: &str = "wharf-capture.bin";

/// The devices that core sees.
pub(crate) type Own = Layered<DynDevice, OsLock>;

/// A layer of a runtime, and why it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerInUse {
    /// Its name, and its options after a colon.
    pub text: String,
    /// Who chose it: `the program` or the variable.
    pub by: &'static str,
    /// `WHARF_LAYERS_DISABLE` switched it off.
    pub off: bool,
}

/// What becomes of all choices.
pub(crate) struct Layers {
    pub(crate) chain: Option<Arc<Chain<OsLock>>>,
    pub(crate) listed: Vec<LayerInUse>,
    pub(crate) findings: Findings,
    /// Why what was chosen is not there.
    pub(crate) refused: Option<Error>,
}

pub(crate) type Findings = Arc<Mutex<Vec<Finding>>>;

fn no_layer(name: &str) -> Error {
    let there = near::there_are(name, "layers", choice::NAMES.into_iter());
    let message = format!("no layer `{}`{there}", near::escaped(name));
    Error::new(ErrorKind::Usage, message)
}

impl Layers {
    /// The chain of the program's choices and, with `environment`, those of the variables. The program's come first and
    /// win over the same layer in the variable.
    pub(crate) fn resolve(chosen: &[String], environment: bool) -> Layers {
        let mut layers = Layers { chain: None, listed: vec![], findings: Findings::default(), refused: None };
        if let Err(error) = layers.make(chosen, environment) {
            layers.refused = Some(error);
        }
        layers
    }

    fn make(&mut self, chosen: &[String], environment: bool) -> Result<()> {
        let chosen = chosen.iter().map(|text| Choice::parse(text).map_err(|name| no_layer(&name)));
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let variable = |name: &str| environment.then(|| env::var_os(name)).flatten();
        let text =
            |value: Option<std::ffi::OsString>| value.unwrap_or_default().to_string_lossy().into_owned();
        let disabled = text(variable(DISABLE_VARIABLE));
        let of_variable = Choice::parse_all(&text(variable(VARIABLE)))
            .map_err(|name| no_layer(&name).next(format!("it is named by {VARIABLE}")))?;
        let all = chosen.iter().map(|one| (one, "the program"));
        let mut used: Vec<&Choice> = vec![];
        for (one, by) in all.chain(of_variable.iter().map(|one| (one, VARIABLE))) {
            if used.iter().any(|other| other.name == one.name) {
                continue;
            }
            used.push(one);
            let off = choice::fits(&disabled, one.name);
            self.listed.push(LayerInUse { text: one.text(), by, off });
        }
        let on = used.into_iter().zip(&self.listed).filter(|(_, listed)| !listed.off);
        let layers = on.map(|(one, _)| self.layer(one)).collect::<Result<Vec<_>>>()?;
        if !layers.is_empty() {
            self.chain = Some(Arc::new(Chain::new(layers, OUTSIDE)));
        }
        Ok(())
    }

    fn layer(&self, choice: &Choice) -> Result<Box<dyn Layer>> {
        let options = choice.options.trim();
        Ok(match choice.name {
            "validation" => {
                if !matches!(options, "" | "abort") {
                    return Err(wrong(choice, &format!("no option `{options}`; known options: `abort`")));
                }
                let (abort, findings) = (options == "abort", self.findings.clone());
                Box::new(Validation::<OsLock>::new(move |finding| tell(finding, &findings, abort)))
            }
            "trace" => {
                let file = if options.is_empty() { TRACE_FILE } else { options };
                Box::new(Trace::<OsLock>::new(Box::new(LayerFile::create(choice.name, Path::new(file))?)))
            }
            "capture" => {
                let file = if options.is_empty() { CAPTURE_FILE } else { options };
                Box::new(Capture::<OsLock>::new(Box::new(LayerFile::create(choice.name, Path::new(file))?)))
            }
            _ => {
                let plan = FaultPlan::parse(options).map_err(|why| wrong(choice, &why))?;
                Box::new(Faults::<OsLock>::new(plan))
            }
        })
    }
}

fn wrong(choice: &Choice, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("layer `{}`: {why}", choice.name))
}

/// A finding as people and programs see it.
fn tell(finding: &Finding, findings: &Findings, abort: bool) {
    let mut all = findings.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() < FINDINGS_MAX {
        all.push(finding.clone());
        drop(all);
        // Nobody is told of a stderr that is closed.
        let _ = writeln!(io::stderr(), "wharf: validation: {finding}");
    }
    if abort && finding.kind.is_certain() {
        process::abort();
    }
}

const OUTSIDE: Outside = Outside { now_ns, thread };

/// Numbers of threads in the order in which they first called.
fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// The file of a trace or a capture. What cannot be written is said once, at the first time.
struct LayerFile {
    layer: &'static str,
    path: PathBuf,
    file: Option<File>,
}

impl LayerFile {
    fn create(layer: &'static str, path: &Path) -> Result<LayerFile> {
        let file = File::create(path).map_err(|error| {
            let message = format!("layer `{layer}`: {}: cannot be written: {error}", path.display());
            Error::new(ErrorKind::Io, message).in_file(path)
        })?;
        Ok(LayerFile { layer, path: path.to_owned(), file: Some(file) })
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes) {
            let _ = writeln!(io::stderr(), "wharf: {}: {}: {error}", self.layer, self.path.display());
            self.file = None;
        }
    }
}

impl Sink for LayerFile {
    fn write(&mut self, text: &str) {
        self.put(text.as_bytes());
    }
}

impl ByteSink for LayerFile {
    fn write(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }
}
