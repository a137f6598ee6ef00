//! Loads a small net from an archive, reads 1,797 handwritten digits, and prints the first ten answers.

use wharf::{Args, LoadOptions, Parameters, Runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = std::env::args().skip(1);
    let (archive, kernels) = (given.next().ok_or("archive?")?, given.next().ok_or("kernels?")?);
    let runtime = Runtime::open(); // Finds plugins; see the module `plugin` for where.
    let device = runtime.device("host:0")?;
    let names = ["layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias", "images"];
    let model = device.load(&Parameters::open(archive)?, &names, LoadOptions::default())?.wait()?;
    let program = device.program(&std::fs::read(kernels)?)?;
    let queue = device.queue()?;
    let (hidden, scores) = (device.allocate(1797 * 32 * 4)?, device.allocate(1797 * 10 * 4)?);
    let answers = device.allocate(1797)?;
    let layer1 = Args::new().buffer(&model[4])?.buffer(&model[0])?.buffer(&model[1])?.buffer(&hidden)?;
    queue.launch(&program.kernel("dense_u8")?, [1797, 1, 1], [1; 3], &layer1.u32(64).u32(32).u32(1))?;
    let layer2 = Args::new().buffer(&hidden)?.buffer(&model[2])?.buffer(&model[3])?.buffer(&scores)?;
    queue.launch(&program.kernel("dense_f32")?, [1797, 1, 1], [1; 3], &layer2.u32(32).u32(10).u32(0))?;
    let argmax = Args::new().buffer(&scores)?.buffer(&answers)?.u32(10);
    queue.launch(&program.kernel("argmax_u8")?, [1797, 1, 1], [1; 3], &argmax)?;
    let mut digits = vec![0u8; 1797];
    queue.read(&answers, &mut digits)?;
    println!("{:?}", &digits[..10]);
    Ok(())
}
