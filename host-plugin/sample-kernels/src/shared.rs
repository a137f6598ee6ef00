//! Kernels with shared memory of a group.

use wharf_kernel::kernel;

kernel! {
    /// Each item puts twice its number into the dynamic shared memory; then all of it goes to `out`.
    pub fn localmem(group: &WorkGroup, out: *mut u32) {
        let items = group.items() as usize;
        // SAFETY: plain numbers; the only reference into the shared memory.
        let shared = unsafe { group.shared::<u32>(items) };
        for (i, value) in shared.iter_mut().enumerate() {
            *value = 2 * i as u32;
        }
        let first = group.index() as usize * items;
        for (i, value) in shared.iter().enumerate() {
            // SAFETY: the launch promised a value for every item; no other group writes here.
            unsafe { out.add(first + i).write(*value) }
        }
    }
}

kernel! {
    /// As `localmem`, in 256 bytes of static shared memory: 64 items at most.
    #[group_max = 64]
    #[shared = 256]
    pub fn localmem_static(group: &WorkGroup, out: *mut u32) {
        let items = group.items() as usize;
        // SAFETY: plain numbers; the only reference into the static shared memory.
        let fixed = unsafe { group.fixed::<u32>(items) };
        for (i, value) in fixed.iter_mut().enumerate() {
            *value = 2 * i as u32;
        }
        let first = group.index() as usize * items;
        for (i, value) in fixed.iter().enumerate() {
            // SAFETY: the launch promised a value for every item; no other group writes here.
            unsafe { out.add(first + i).write(*value) }
        }
    }
}

kernel! {
    /// The sum of all item numbers of the group, through the dynamic shared memory, to `out[group]`.
    pub fn localmem_reduction(group: &WorkGroup, out: *mut u32) {
        // SAFETY: plain numbers; the only reference into the shared memory.
        let shared = unsafe { group.shared::<u32>(group.items() as usize) };
        for (i, value) in shared.iter_mut().enumerate() {
            *value = i as u32;
        }
        let sum = shared.iter().sum();
        // SAFETY: the launch promised a value for every group; no other group writes here.
        unsafe { out.add(group.index() as usize).write(sum) }
    }
}

kernel! {
    /// Fills the group's shared memory with its number, waits `turns`, and counts into `wrong[group]` what differs.
    pub fn localmem_apart(group: &WorkGroup, turns: u64, wrong: *mut u32) {
        let mark = group.index() as u8;
        // SAFETY: plain numbers; the only reference into the shared memory.
        let shared = unsafe { group.shared::<u8>(group.shared_len as usize) };
        shared.fill(mark);
        for i in 0..turns {
            core::hint::black_box(i);
        }
        let odd = core::hint::black_box(&*shared).iter().filter(|&&value| value != mark).count();
        let badly_aligned = u32::from(!shared.as_ptr().addr().is_multiple_of(64));
        // SAFETY: the launch promised a value for every group; no other group writes here.
        unsafe { wrong.add(group.index() as usize).write(odd as u32 + badly_aligned) }
    }
}
