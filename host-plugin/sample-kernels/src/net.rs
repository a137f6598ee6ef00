//! The layers of a small net that reads digits: one group of a launch takes one image, one item one output.

use wharf_kernel::kernel;

kernel! {
    /// A dense layer over pixels of 0 to 16: `out = weights * (image / 16) + bias`, `weights[output][input]`, below 0
    /// cut off if `relu` is not 0. Groups in x: images. Items: outputs.
    pub fn dense_u8(
        group: &WorkGroup, images: *const u8, weights: *const f32, bias: *const f32, out: *mut f32, inputs: u32,
        outputs: u32, relu: u32,
    ) {
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        // SAFETY: the launch promised `inputs` pixels for every group.
        let image = unsafe { core::slice::from_raw_parts(images.add(group.id[0] as usize * inputs), inputs) };
        for o in 0..outputs {
            // SAFETY: the launch promised `outputs` rows of `inputs` weights.
            let row = unsafe { core::slice::from_raw_parts(weights.add(o * inputs), inputs) };
            let sum: f32 = row.iter().zip(image).map(|(w, p)| w * (f32::from(*p) / 16.0)).sum();
            // SAFETY: the launch promised `outputs` values.
            let value = sum + unsafe { bias.add(o).read() };
            let value = if relu != 0 { value.max(0.0) } else { value };
            // SAFETY: the launch promised `outputs` values for every group.
            unsafe { out.add(group.id[0] as usize * outputs + o).write(value) }
        }
    }
}

kernel! {
    /// As `dense_u8`, over numbers.
    pub fn dense_f32(
        group: &WorkGroup, from: *const f32, weights: *const f32, bias: *const f32, out: *mut f32, inputs: u32,
        outputs: u32, relu: u32,
    ) {
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        // SAFETY: the launch promised `inputs` values for every group.
        let from = unsafe { core::slice::from_raw_parts(from.add(group.id[0] as usize * inputs), inputs) };
        for o in 0..outputs {
            // SAFETY: the launch promised `outputs` rows of `inputs` weights.
            let row = unsafe { core::slice::from_raw_parts(weights.add(o * inputs), inputs) };
            let sum: f32 = row.iter().zip(from).map(|(w, v)| w * v).sum();
            // SAFETY: the launch promised `outputs` values.
            let value = sum + unsafe { bias.add(o).read() };
            let value = if relu != 0 { value.max(0.0) } else { value };
            // SAFETY: the launch promised `outputs` values for every group.
            unsafe { out.add(group.id[0] as usize * outputs + o).write(value) }
        }
    }
}

kernel! {
    /// The number of the largest of `classes` values, the first of equals, for every group in x.
    pub fn argmax_u8(group: &WorkGroup, scores: *const f32, out: *mut u8, classes: u32) {
        let classes = classes as usize;
        // SAFETY: the launch promised `classes` values for every group.
        let row = unsafe { core::slice::from_raw_parts(scores.add(group.id[0] as usize * classes), classes) };
        let mut best = 0;
        for (i, value) in row.iter().enumerate() {
            if *value > row[best] {
                best = i;
            }
        }
        // SAFETY: the launch promised a value for every group.
        unsafe { out.add(group.id[0] as usize).write(best as u8) }
    }
}
