//! Archives that are made for the run, with the sizes of real ones: many large tensors with small ones among them,
//! twenty thousand small ones, a long vocabulary.

use crate::args::Fail;
use std::{
    env,
    fs::{self, File},
    io::{BufWriter, Write},
    path::PathBuf,
};

/// A tensor's name and its bytes, a multiple of four.
pub type Sizes = Vec<(String, u64)>;

/// 300 tensors of so many MiB in all: 110 large, 70 of a quarter of that, 120 of a few KiB, mixed.
pub fn large(mib: u64) -> Sizes {
    let (big, tiny) = (110 * 4 + 70, (0..120).map(tiny_len).sum::<u64>());
    let quarter = ((mib << 20) - tiny) / big / 64 * 64;
    let mut sizes: Sizes = (0..110).map(|i| (format!("blk.{i}.ffn.weight"), quarter * 4)).collect();
    sizes.extend((0..70).map(|i| (format!("blk.{i}.attn.weight"), quarter)));
    sizes.extend((0..120).map(|i| (format!("blk.{i}.norm.weight"), tiny_len(i))));
    // A step that shares no divisor with 300 mixes them, the same way each time.
    (0..sizes.len()).map(|i| sizes[i * 131 % sizes.len()].clone()).collect()
}

fn tiny_len(i: u64) -> u64 {
    4096 * (1 + i % 5) + 64 * (i % 7)
}

/// 20,000 tensors between 256 bytes and 8 KiB, 84 MB in all.
pub fn small() -> Sizes {
    let len = |i: u64| (64 + i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1985) * 4;
    (0..20_000).map(|i| (format!("layer.{i:05}.param.weight"), len(i))).collect()
}

/// The folder that archives are kept in between runs.
fn folder() -> Result<PathBuf, Fail> {
    let folder = env::var_os("WHARF_BENCH_DATA").map_or_else(env::temp_dir, PathBuf::from);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A safetensors file with these tensors, made once; their bytes are a pattern that repeats nowhere soon.
///
/// # Errors
/// A folder that cannot be written.
pub fn safetensors(name: &str, sizes: &Sizes) -> Result<(PathBuf, u64), Fail> {
    let mut head = String::from("{");
    let mut at = 0;
    for (key, len) in sizes {
        let comma = if at == 0 { "" } else { "," };
        let (elements, end) = (len / 4, at + len);
        head += &format!(
            "{comma}\"{key}\":{{\"dtype\":\"F32\",\"shape\":[{elements}],\"data_offsets\":[{at},{end}]}}"
        );
        at = end;
    }
    head.push('}');
    head += &" ".repeat(head.len().next_multiple_of(64) + 56 - head.len());
    let data_at = 8 + head.len() as u64;
    let path = folder()?.join(name);
    if fs::metadata(&path).is_ok_and(|known| known.len() == data_at + at) {
        return Ok((path, data_at));
    }
    let mut out = BufWriter::new(File::create(&path)?);
    out.write_all(&(head.len() as u64).to_le_bytes())?;
    out.write_all(head.as_bytes())?;
    let block: Vec<u8> =
        (0..1u64 << 17).flat_map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes()).collect();
    let mut left = at;
    while left > 0 {
        let step = left.min(block.len() as u64 - left % 8);
        out.write_all(&block[..step as usize])?;
        left -= step;
    }
    out.flush()?;
    Ok((path, data_at))
}

/// A GGUF file with these tensors and a vocabulary; its data is a hole, so it takes no room.
///
/// # Errors
/// A folder that cannot be written.
pub fn gguf(name: &str, sizes: &Sizes, vocabulary: usize) -> Result<(PathBuf, u64), Fail> {
    let mut head = b"GGUF\x03\0\0\0".to_vec();
    let text = |head: &mut Vec<u8>, text: &str| {
        head.extend((text.len() as u64).to_le_bytes());
        head.extend(text.as_bytes());
    };
    head.extend((sizes.len() as u64).to_le_bytes());
    head.extend(1u64.to_le_bytes());
    text(&mut head, "tokenizer.ggml.tokens");
    // An array (9) of strings (8).
    head.extend([9u32.to_le_bytes(), 8u32.to_le_bytes()].concat());
    head.extend((vocabulary as u64).to_le_bytes());
    (0..vocabulary).for_each(|i| text(&mut head, &format!("{:0w$}", i, w = 6 + i % 26)));
    let mut at = 0;
    for (key, len) in sizes {
        text(&mut head, key);
        // One dimension, F32 (0).
        head.extend(1u32.to_le_bytes());
        head.extend((len / 4).to_le_bytes());
        head.extend(0u32.to_le_bytes());
        head.extend(u64::to_le_bytes(at));
        at += len.next_multiple_of(32);
    }
    head.resize(head.len().next_multiple_of(32), 0);
    let path = folder()?.join(name);
    fs::write(&path, &head)?;
    File::options().write(true).open(&path)?.set_len(head.len() as u64 + at)?;
    Ok((path, head.len() as u64))
}
