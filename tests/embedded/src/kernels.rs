//! The kernels that are linked in: the layers of a small net. A group of a launch takes one image.
//!
//! # Safety
//! A launch promises that the addresses in its arguments are those of live memory with as many values as its numbers and
//! groups say, and that nothing else touches it until the launch has ended.
#![allow(unsafe_code)]

use core::{ptr, slice};

/// Bytes of arguments of every kernel here.
pub const ARGS_LEN: usize = 48;

/// A kernel: its name, and what it does for so many groups.
pub struct Entry {
    pub(crate) name: &'static [u8],
    pub(crate) run: fn(&Args, u32),
}

/// The table.
pub static TABLE: [Entry; 3] = [
    Entry { name: b"dense_u8", run: dense_u8 },
    Entry { name: b"dense_f32", run: dense_f32 },
    Entry { name: b"argmax_u8", run: argmax_u8 },
];

/// The arguments of all kernels here, packed in this order without gaps.
#[derive(Clone, Copy, Default)]
pub struct Args {
    /// Address of what is read.
    pub from: u64,
    /// Address of the weights, `outputs` rows of `inputs`.
    pub weights: u64,
    /// Address of the bias, `outputs` values.
    pub bias: u64,
    /// Address of what is written.
    pub out: u64,
    /// Values read for each group.
    pub inputs: u32,
    /// Values written for each group.
    pub outputs: u32,
    /// Not 0: what is below 0 is cut off.
    pub relu: u32,
}

impl Args {
    /// Packed.
    pub fn pack(&self) -> [u8; ARGS_LEN] {
        let mut packed = [0; ARGS_LEN];
        let words = [self.from, self.weights, self.bias, self.out];
        let numbers = [self.inputs, self.outputs, self.relu];
        for (to, word) in packed.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        for (to, number) in packed[32..].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        packed
    }

    pub(crate) fn unpack(packed: &[u8; ARGS_LEN]) -> Args {
        let mut words = [0; 4];
        let mut numbers = [0; 4];
        for (word, from) in words.iter_mut().zip(packed.chunks_exact(8)) {
            *word = from.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        }
        for (number, from) in numbers.iter_mut().zip(packed[32..].chunks_exact(4)) {
            *number = from.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
        }
        let [from, weights, bias, out] = words;
        let [inputs, outputs, relu, _] = numbers;
        Args { from, weights, bias, out, inputs, outputs, relu }
    }
}

/// `len` values from the `skip`th on, at an address of a launch's arguments.
fn values<T>(address: u64, skip: usize, len: usize) -> &'static [T] {
    let at = ptr::with_exposed_provenance::<T>(address as usize).wrapping_add(skip);
    // SAFETY: see the module.
    unsafe { slice::from_raw_parts(at, len) }
}

fn write<T>(address: u64, skip: usize, value: T) {
    let at = ptr::with_exposed_provenance_mut::<T>(address as usize).wrapping_add(skip);
    // SAFETY: see the module.
    unsafe { at.write(value) }
}

/// A dense layer: `out = weights * input + bias` for each group.
fn dense<T: Copy + 'static>(args: &Args, groups: u32, value_of: fn(T) -> f32) {
    let (inputs, outputs) = (args.inputs as usize, args.outputs as usize);
    for group in 0..groups as usize {
        let from = values::<T>(args.from, group * inputs, inputs);
        for output in 0..outputs {
            let row = values::<f32>(args.weights, output * inputs, inputs);
            let sum: f32 = row.iter().zip(from).map(|(weight, value)| weight * value_of(*value)).sum();
            let value = sum + values::<f32>(args.bias, output, 1)[0];
            let value = if args.relu != 0 && value < 0.0 { 0.0 } else { value };
            write(args.out, group * outputs + output, value);
        }
    }
}

/// A dense layer over pixels of 0 to 16, taken as 0 to 1.
fn dense_u8(args: &Args, groups: u32) {
    dense::<u8>(args, groups, |pixel| f32::from(pixel) / 16.0);
}

/// A dense layer over numbers.
fn dense_f32(args: &Args, groups: u32) {
    dense::<f32>(args, groups, |value| value);
}

/// The number of the largest of `inputs` values, the first of equals.
fn argmax_u8(args: &Args, groups: u32) {
    let inputs = args.inputs as usize;
    for group in 0..groups as usize {
        let row = values::<f32>(args.from, group * inputs, inputs);
        let best = (1..inputs).fold(0, |best, i| if row[i] > row[best] { i } else { best });
        write(args.out, group, best as u8);
    }
}
