//! Kernels that show how arguments and grids arrive.

use wharf_kernel::kernel;

kernel! {
    /// `out[i] = i` for every item of the grid, counted over x, then y, then z of the groups.
    pub fn foo(group: &WorkGroup, out: *mut u32) {
        let first = group.index() * u64::from(group.items());
        for i in first..first + u64::from(group.items()) {
            // SAFETY: the launch promised a value for every item; no other group writes here.
            unsafe { out.add(i as usize).write(i as u32) }
        }
    }
}

kernel! {
    /// Nothing.
    pub fn noargs(_group: &WorkGroup) {}
}

kernel! {
    /// `*b = a + c`: arguments with holes between them.
    pub fn multiargs(_group: &WorkGroup, a: i8, b: *mut i32, c: i16) {
        // SAFETY: the launch promised one value.
        unsafe { b.write(i32::from(a) + i32::from(c)) }
    }
}

/// The structure that `composite` takes by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pair {
    /// First.
    pub a: u32,
    /// Second.
    pub b: u32,
}

kernel! {
    /// `*out = a + pair.a + pair.b`: a structure by value.
    pub fn composite(_group: &WorkGroup, a: u8, pair: Pair, out: *mut u32) {
        // SAFETY: the launch promised one value.
        unsafe { out.write(u32::from(a) + pair.a + pair.b) }
    }
}

kernel! {
    /// `*out = value`: a single byte as an argument.
    pub fn byte(_group: &WorkGroup, value: u8, out: *mut u8) {
        // SAFETY: the launch promised one value.
        unsafe { out.write(value) }
    }
}

kernel! {
    /// One step of Fibonacci: `inout[idx] = inout[idx - 1] + inout[idx - 2]`, and 0, 1 to begin with.
    pub fn sequence(_group: &WorkGroup, idx: u32, inout: *mut u32) {
        let i = idx as usize;
        // SAFETY: the launch promised `idx + 1` values; `idx` is 2 or more in this branch.
        let value = if i < 2 { idx } else { unsafe { inout.add(i - 1).read().wrapping_add(inout.add(i - 2).read()) } };
        // SAFETY: the launch promised `idx + 1` values.
        unsafe { inout.add(i).write(value) }
    }
}

kernel! {
    /// `y[i] += a * x[i]` for the group's items of `n`.
    pub fn saxpy(group: &WorkGroup, n: u32, a: f32, x: *const f32, y: *mut f32) {
        let n = n as usize;
        let first = (group.first_x() as usize).min(n);
        let len = (group.items() as usize).min(n - first);
        // SAFETY: the launch promised `n` values behind `x`, which nothing writes.
        let x = unsafe { core::slice::from_raw_parts(x.add(first), len) };
        // SAFETY: the launch promised `n` values behind `y`; no other group uses these.
        let y = unsafe { core::slice::from_raw_parts_mut(y.add(first), len) };
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * *x;
        }
    }
}

kernel! {
    /// `hits[group] += 1`, and the group's id in x, y, z packed into `ids[group]`.
    pub fn mark(group: &WorkGroup, hits: *mut u32, ids: *mut u64) {
        let i = group.index() as usize;
        let [x, y, z] = group.id;
        let id = u64::from(x) | u64::from(y) << 20 | u64::from(z) << 40;
        // SAFETY: the launch promised a value for every group; only this group uses it.
        unsafe { *hits.add(i) += 1 }
        // SAFETY: as above.
        unsafe { ids.add(i).write(id) }
    }
}

kernel! {
    /// Turns round `turns` times, then adds 1 to `*out`: work of a chosen length.
    pub fn spin(_group: &WorkGroup, turns: u64, out: *mut u32) {
        for i in 0..turns {
            core::hint::black_box(i);
        }
        // SAFETY: the launch promised one value, which no other group uses at the same time.
        unsafe { *out += 1 }
    }
}
