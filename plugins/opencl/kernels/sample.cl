// The kernels that tests of every backend know, in OpenCL C. Left out: those about globals (`write`, `read`), of which OpenCL
// tells the host nothing. All of it stands in one condition, so that a file that was cut off does not compile.
#ifndef WHARF_SAMPLE
#define WHARF_SAMPLE
#pragma OPENCL FP_CONTRACT OFF

// Number of the group, counted over x, then y, then z.
static size_t group_index(void) {
    return get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
}

// Number of the item in its group, counted in the same way.
static size_t item_index(void) {
    return get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
}

// Items of a group.
static size_t items(void) { return get_local_size(0) * get_local_size(1) * get_local_size(2); }

// `out[i] = i` for every item of the grid, counted over the groups, then over their items.
__kernel void foo(__global uint *out) {
    size_t i = group_index() * items() + item_index();
    out[i] = (uint)i;
}

__kernel void noargs(void) {}

// `*b = a + c`: arguments with holes between them.
__kernel void multiargs(char a, __global int *b, short c) { *b = a + c; }

// A structure by value.
typedef struct {
    uint a;
    uint b;
} pair;

__kernel void composite(uchar a, pair both, __global uint *out) { *out = a + both.a + both.b; }

// `*out = value`: a single byte as an argument.
__kernel void byte(uchar value, __global uchar *out) { *out = value; }

// Each item puts twice its number into the dynamic shared memory; then each takes that of the item opposite to `out`.
__kernel void localmem(__global uint *out, __local uint *shared) {
    size_t i = item_index(), n = items();
    shared[i] = 2 * (uint)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[group_index() * n + n - 1 - i] = shared[n - 1 - i];
}

// As `localmem`, in 256 bytes of static shared memory: 64 items at most.
__kernel void localmem_static(__global uint *out) {
    __local uint fixed[64];
    size_t i = item_index(), n = items();
    fixed[i] = 2 * (uint)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[group_index() * n + n - 1 - i] = fixed[n - 1 - i];
}

// The sum of all item numbers of the group, through the dynamic shared memory, to `out[group]`.
__kernel void localmem_reduction(__global uint *out, __local uint *shared) {
    size_t i = item_index();
    shared[i] = (uint)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 0) {
        uint sum = 0;
        for (size_t k = 0; k < items(); k++) sum += shared[k];
        out[group_index()] = sum;
    }
}

// One step of Fibonacci: `inout[idx] = inout[idx - 1] + inout[idx - 2]`, and 0, 1 to begin with.
__kernel void sequence(uint idx, __global uint *inout) {
    inout[idx] = idx < 2 ? idx : inout[idx - 1] + inout[idx - 2];
}

// `y[i] += a * x[i]` for the items of `n`.
__kernel void saxpy(uint n, float a, __global const float *x, __global float *y) {
    size_t i = get_global_id(0);
    if (i < n) y[i] += a * x[i];
}

// `hits[group] += 1`, and the group's id in x, y, z packed into `ids[group]`.
__kernel void mark(__global uint *hits, __global ulong *ids) {
    if (item_index() != 0) return;
    size_t i = group_index();
    hits[i] += 1;
    ids[i] = (ulong)get_group_id(0) | (ulong)get_group_id(1) << 20 | (ulong)get_group_id(2) << 40;
}

// Turns round `turns` times, then adds 1 to `*out`: work of a chosen length.
__kernel void spin(ulong turns, __global uint *out) {
    if (item_index() != 0) return;
    volatile ulong turn;
    for (turn = 0; turn < turns; turn++) {}
    *out += 1;
}

// A dense layer over pixels of 0 to 16: `out = weights * (image / 16) + bias`, `weights[output][input]`, below 0 cut off if
// `relu` is not 0. Groups in x: images. Items share the outputs.
__kernel void dense_u8(__global const uchar *images, __global const float *weights, __global const float *bias,
                       __global float *out, uint inputs, uint outputs, uint relu) {
    size_t image = get_group_id(0);
    for (size_t o = get_local_id(0); o < outputs; o += get_local_size(0)) {
        float sum = 0.0f;
        for (size_t i = 0; i < inputs; i++) sum += weights[o * inputs + i] * ((float)images[image * inputs + i] / 16.0f);
        float value = sum + bias[o];
        out[image * outputs + o] = relu != 0 && value < 0.0f ? 0.0f : value;
    }
}

// As `dense_u8`, over numbers.
__kernel void dense_f32(__global const float *from, __global const float *weights, __global const float *bias,
                        __global float *out, uint inputs, uint outputs, uint relu) {
    size_t row = get_group_id(0);
    for (size_t o = get_local_id(0); o < outputs; o += get_local_size(0)) {
        float sum = 0.0f;
        for (size_t i = 0; i < inputs; i++) sum += weights[o * inputs + i] * from[row * inputs + i];
        float value = sum + bias[o];
        out[row * outputs + o] = relu != 0 && value < 0.0f ? 0.0f : value;
    }
}

// The number of the largest of `classes` values, the first of equals, for every group in x.
__kernel void argmax_u8(__global const float *scores, __global uchar *out, uint classes) {
    if (get_local_id(0) != 0) return;
    size_t row = get_group_id(0);
    uint best = 0;
    for (uint i = 1; i < classes; i++)
        if (scores[row * classes + i] > scores[row * classes + best]) best = i;
    out[row] = (uchar)best;
}

#endif
