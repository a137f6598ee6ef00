//! The one program there is: a kernel `add` that adds a number to every byte of a range, and a global `answer`.

use crate::{Null, space::Space};
use wharf_core::{
    device::{Block, Kernel, Param, Programs, SymbolKind},
    fault::{Fault, Kind, Site, Why},
};

/// The image of the program.
pub const IMAGE: &[u8] = b"\0wharf null program 1";

/// `add(to: u64, len: u64, by: u8)`: work-item i of all adds `by` to byte i, if that is inside the range.
const ADD: u64 = 1;
const PARAMS: [Param; 3] = [
    Param { offset: 0, size: 8, align: 8, flags: 0 },
    Param { offset: 8, size: 8, align: 8, flags: 0 },
    Param { offset: 16, size: 1, align: 1, flags: 0 },
];
const ARGS_LEN: u32 = 17;
const GROUP_MAX: u32 = 256;
const ANSWER_LEN: u64 = 8;

fn not_found(site: Site) -> Fault {
    Fault::caller(Kind::NotFound, site, Why::Unknown, [0; 2])
}

// The word for a program is the address of its global.
impl Programs for Null {
    fn accepts(&self, image: &[u8]) -> bool {
        image == IMAGE
    }

    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        if !self.accepts(image) {
            return Err(Fault::caller(Kind::InvalidImage, Site::Load, Why::Unknown, [0; 2]));
        }
        let mut space = self.space();
        let answer = space.allocate(ANSWER_LEN, ANSWER_LEN)?;
        space.bytes(answer, ANSWER_LEN, Site::Load)?.copy_from_slice(&42u64.to_le_bytes());
        Ok(answer)
    }

    fn unload(&self, program: u64) -> Result<(), Fault> {
        self.space().free(program)
    }

    fn kernel(&self, _program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        match name {
            b"add" => {}
            b"answer" => return Err(Fault::caller(Kind::SymbolKind, Site::Kernel, Why::Unknown, [0; 2])),
            _ => return Err(not_found(Site::Kernel)),
        }
        if !layout.is_empty() && layout != PARAMS {
            let values = [layout.len() as u64, PARAMS.len() as u64];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Kernel, Why::Mismatch, values));
        }
        let params = PARAMS.len() as u32;
        Ok(Kernel { native: ADD, args_len: ARGS_LEN, params, group_max: GROUP_MAX, shared_static: 0 })
    }

    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        match name {
            b"answer" => Ok(Block { base: program, len: ANSWER_LEN, native: 0 }),
            b"add" => Err(Fault::caller(Kind::SymbolKind, Site::Global, Why::Unknown, [0; 2])),
            _ => Err(not_found(Site::Global)),
        }
    }

    fn symbol(&self, _: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        let (name, kind): (&[u8], _) = match index {
            0 => (b"add", SymbolKind::Kernel),
            1 => (b"answer", SymbolKind::Global),
            _ => return Ok(None),
        };
        let fits = name.len().min(out.len());
        out[..fits].copy_from_slice(&name[..fits]);
        Ok(Some((name.len(), kind)))
    }

    fn params(&self, _kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        let fits = PARAMS.len().min(out.len());
        out[..fits].copy_from_slice(&PARAMS[..fits]);
        Ok(PARAMS.len())
    }

    fn occupancy(&self, _kernel: u64, _shared: u64) -> Result<u32, Fault> {
        Ok(GROUP_MAX)
    }
}

pub(crate) fn run(
    space: &mut Space,
    kernel: u64,
    groups: [u32; 3],
    size: [u32; 3],
    args: &[u8],
) -> Result<(), Fault> {
    let word = |at: usize| args.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    let (Some(to), Some(len), Some(by), ADD) = (word(0), word(8), args.get(16), kernel) else {
        let values = [args.len() as u64, ARGS_LEN.into()];
        return Err(Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Mismatch, values));
    };
    let items = groups.iter().chain(&size).fold(1u64, |all, n| all.saturating_mul((*n).into()));
    space.bytes(to, len.min(items), Site::Launch)?.iter_mut().for_each(|byte| *byte = byte.wrapping_add(*by));
    Ok(())
}
