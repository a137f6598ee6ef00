//! Element types of tensors: names, and how many bits a block of elements takes. An open set: a number from the tables
//! of safetensors and ggml, not an enum, so that a new type is a new row.
//!
//! Sizes of ggml's types are those of its C structs (`ggml-common.h`); Q8_1 has 36 bytes there.

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dtype(u8);

/// Why a shape has no size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsized {
    /// The number of elements or bytes does not fit 64 bits.
    Overflow,
    /// The elements are no whole number of blocks or bytes.
    Ragged,
}

struct Row {
    name: &'static str,
    /// Elements of a block.
    elements: u32,
    /// Bits of a block.
    bits: u32,
    /// ggml's number, or `NONE`.
    ggml: u8,
    safetensors: bool,
}

const NONE: u8 = u8::MAX;

const fn plain(name: &'static str, bits: u32, ggml: u8, safetensors: bool) -> Row {
    Row { name, elements: 1, bits, ggml, safetensors }
}
const fn block(name: &'static str, ggml: u8, elements: u32, bytes: u32) -> Row {
    Row { name, elements, bits: bytes * 8, ggml, safetensors: false }
}

const ROWS: [Row; 49] = [
    plain("F32", 32, 0, true),
    plain("F16", 16, 1, true),
    plain("BF16", 16, 30, true),
    plain("F64", 64, 28, true),
    plain("I8", 8, 24, true),
    plain("I16", 16, 25, true),
    plain("I32", 32, 26, true),
    plain("I64", 64, 27, true),
    plain("BOOL", 8, NONE, true),
    plain("U8", 8, NONE, true),
    plain("U16", 16, NONE, true),
    plain("U32", 32, NONE, true),
    plain("U64", 64, NONE, true),
    plain("C64", 64, NONE, true),
    plain("F8_E5M2", 8, NONE, true),
    plain("F8_E4M3", 8, NONE, true),
    plain("F8_E8M0", 8, NONE, true),
    plain("F8_E4M3FNUZ", 8, NONE, true),
    plain("F8_E5M2FNUZ", 8, NONE, true),
    plain("F4", 4, NONE, true),
    plain("F6_E2M3", 6, NONE, true),
    plain("F6_E3M2", 6, NONE, true),
    block("Q4_0", 2, 32, 18),
    block("Q4_1", 3, 32, 20),
    block("Q5_0", 6, 32, 22),
    block("Q5_1", 7, 32, 24),
    block("Q8_0", 8, 32, 34),
    block("Q8_1", 9, 32, 36),
    block("Q2_K", 10, 256, 84),
    block("Q3_K", 11, 256, 110),
    block("Q4_K", 12, 256, 144),
    block("Q5_K", 13, 256, 176),
    block("Q6_K", 14, 256, 210),
    block("Q8_K", 15, 256, 292),
    block("IQ2_XXS", 16, 256, 66),
    block("IQ2_XS", 17, 256, 74),
    block("IQ3_XXS", 18, 256, 98),
    block("IQ1_S", 19, 256, 50),
    block("IQ4_NL", 20, 32, 18),
    block("IQ3_S", 21, 256, 110),
    block("IQ2_S", 22, 256, 82),
    block("IQ4_XS", 23, 256, 136),
    block("IQ1_M", 29, 256, 56),
    block("TQ1_0", 34, 256, 54),
    block("TQ2_0", 35, 256, 66),
    block("MXFP4", 39, 32, 17),
    block("NVFP4", 40, 64, 36),
    block("Q1_0", 41, 128, 18),
    block("Q2_0", 42, 64, 18),
];

/// Rows by ggml's number.
static BY_GGML: [u8; 43] = {
    let mut table = [NONE; 43];
    let mut row = 0;
    while row < ROWS.len() {
        if ROWS[row].ggml != NONE {
            table[ROWS[row].ggml as usize] = row as u8;
        }
        row += 1;
    }
    table
};

impl Dtype {
    /// All types, each once.
    pub fn all() -> impl Iterator<Item = Dtype> {
        (0..ROWS.len() as u8).map(Dtype)
    }
    /// The type with this number in ggml's `ggml_type`; none for a withdrawn or unknown number.
    pub fn from_ggml(id: u32) -> Option<Dtype> {
        let row = *BY_GGML.get(usize::try_from(id).ok()?)?;
        (row != NONE).then_some(Dtype(row))
    }
    /// True for numbers that ggml once gave to a type and withdrew.
    pub const fn withdrawn_ggml(id: u32) -> bool {
        matches!(id, 4 | 5 | 31..=33 | 36..=38)
    }
    /// The type with this name in a safetensors header.
    pub fn from_safetensors(name: &str) -> Option<Dtype> {
        Self::all().find(|t| t.row().safetensors && t.row().name == name)
    }
    /// The type with this name in any format.
    pub fn from_name(name: &str) -> Option<Dtype> {
        Self::all().find(|t| t.row().name == name)
    }
    /// The number in ggml's `ggml_type`.
    pub fn ggml(self) -> Option<u32> {
        let id = self.row().ggml;
        (id != NONE).then_some(u32::from(id))
    }
    /// True if safetensors has this type.
    pub fn in_safetensors(self) -> bool {
        self.row().safetensors
    }
    /// The name, as in safetensors headers and ggml's tables.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// Elements of a block; 1 for types that are not quantised in blocks.
    pub fn block_elements(self) -> u64 {
        u64::from(self.row().elements)
    }
    /// Bits of a block; a multiple of 8 except for 4-bit and 6-bit floats.
    pub fn block_bits(self) -> u64 {
        u64::from(self.row().bits)
    }
    /// Bytes of a block; none where a block is no whole number of bytes.
    pub fn block_bytes(self) -> Option<u64> {
        self.block_bits().is_multiple_of(8).then(|| self.block_bits() / 8)
    }

    /// Bytes of a tensor of this shape, outermost dimension first.
    ///
    /// A dimension of zero makes it empty, whatever the others are.
    ///
    /// # Errors
    /// Rows that are no whole number of blocks, bits that are no whole number of bytes, overflow.
    pub fn bytes(self, shape: &[u64]) -> Result<u64, Unsized> {
        let elements = elements(shape).ok_or(Unsized::Overflow)?;
        let inner = shape.last().copied().unwrap_or(1);
        if !inner.is_multiple_of(self.block_elements()) {
            return Err(Unsized::Ragged);
        }
        // At most 2^64 elements of 2^12 bits.
        let bits = u128::from(elements / self.block_elements()) * u128::from(self.block_bits());
        if !bits.is_multiple_of(8) {
            return Err(Unsized::Ragged);
        }
        u64::try_from(bits / 8).map_err(|_| Unsized::Overflow)
    }

    fn row(self) -> &'static Row {
        const { &ROWS }.get(usize::from(self.0)).expect("only numbers of rows are made")
    }
}

impl core::fmt::Debug for Dtype {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
impl core::fmt::Display for Dtype {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// Product of the dimensions; none if it does not fit 64 bits and no dimension is zero.
pub fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}
