//! `wharf demo`: a small net of two layers that reads digits, from an archive, on a device.

use crate::{
    cli::{DemoArgs, Global},
    devices::{device_json, usable},
    load::device,
    out::{Failure, Out},
};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Instant};
use wharf::{Args, Buffer, Device, Error, ErrorKind, LoadOptions, Parameters, Queue};

/// Pixels, hidden values and classes of the net.
const PIXELS: u32 = 64;
const HIDDEN: u32 = 32;
const CLASSES: u32 = 10;
/// Tensors of the archive, in the order in which they are loaded.
const NAMES: [&str; 6] = ["layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias", "images", "labels"];

pub(crate) fn run(global: &Global, args: &DemoArgs, out: &mut Out) -> Result<(), Failure> {
    let begin = Instant::now();
    let runtime = usable(global)?;
    let device = device(&runtime, &args.device)?;
    let parameters = Parameters::open(&args.archive)?;
    let load = device.load(&parameters, &NAMES, LoadOptions::default())?;
    let (timelines, bytes) = (load.timelines(), load.progress().1);
    let buffers = load.wait()?;
    let loaded = begin.elapsed().as_secs_f64();
    let image = read(&args.kernels)?;
    let labels_len = usize::try_from(buffers[5].len()).unwrap_or(usize::MAX);
    let mut labels = vec![0u8; labels_len];
    let predictions = infer(&device, &buffers, &image, &mut labels)?;
    let seconds = begin.elapsed().as_secs_f64();
    let correct = predictions.iter().zip(&labels).filter(|(p, l)| p == l).count();
    let matching = match &args.expect {
        Some(file) => Some(compare(file, &predictions)?),
        None => None,
    };
    let report =
        Report { device: &device, bytes, timelines, loaded, seconds, total: labels.len(), correct, matching };
    report.print(out)?;
    match matching {
        Some(same) if same != labels.len() => {
            let message =
                format!("{} of {} predictions differ from the reference", labels.len() - same, labels.len());
            Err(Error::new(ErrorKind::Plugin, message).into())
        }
        _ => Ok(()),
    }
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NoSuchFile } else { ErrorKind::Io };
        Error::new(kind, format!("{}: cannot be read: {error}", file.display())).in_file(file).into()
    })
}

/// Two layers and an argmax over all images, then the answers.
fn infer(device: &Device, model: &[Buffer], image: &[u8], labels: &mut [u8]) -> Result<Vec<u8>, Failure> {
    let count = labels.len() as u64;
    let (images, groups) = (&model[4], u32::try_from(labels.len()).unwrap_or(u32::MAX));
    check(model, count)?;
    let program = device.program(image)?;
    let (first, second, answer) =
        (program.kernel("dense_u8")?, program.kernel("dense_f32")?, program.kernel("argmax_u8")?);
    let queue: Queue = device.queue()?;
    let hidden = device.allocate(count * u64::from(HIDDEN) * 4)?;
    let scores = device.allocate(count * u64::from(CLASSES) * 4)?;
    let answers = device.allocate(count)?;
    let layer = |from: &Buffer,
                 weights: &Buffer,
                 bias: &Buffer,
                 to: &Buffer,
                 inputs: u32,
                 outputs: u32,
                 relu: bool| {
        let args = Args::new().buffer(from)?.buffer(weights)?.buffer(bias)?.buffer(to)?;
        Ok::<Args, Error>(args.u32(inputs).u32(outputs).u32(relu.into()))
    };
    let one = layer(images, &model[0], &model[1], &hidden, PIXELS, HIDDEN, true)?;
    queue.launch(&first, [groups, 1, 1], [1, 1, 1], &one)?;
    let two = layer(&hidden, &model[2], &model[3], &scores, HIDDEN, CLASSES, false)?;
    queue.launch(&second, [groups, 1, 1], [1, 1, 1], &two)?;
    let last = Args::new().buffer(&scores)?.buffer(&answers)?.u32(CLASSES);
    queue.launch(&answer, [groups, 1, 1], [1, 1, 1], &last)?;
    let mut predictions = vec![0u8; labels.len()];
    queue.read(&answers, &mut predictions)?;
    queue.read(&model[5], labels)?;
    Ok(predictions)
}

/// The archive's tensors have the sizes of this net: kernels are not asked to read past them.
fn check(model: &[Buffer], count: u64) -> Result<(), Failure> {
    let wanted = [PIXELS * HIDDEN * 4, HIDDEN * 4, HIDDEN * CLASSES * 4, CLASSES * 4].map(u64::from);
    let wanted = wanted.iter().copied().chain([count * u64::from(PIXELS), count]);
    for ((name, buffer), bytes) in NAMES.iter().zip(model).zip(wanted) {
        if buffer.len() != bytes {
            let message = format!("tensor `{name}` has {} bytes, this net needs {bytes}", buffer.len());
            return Err(Error::new(ErrorKind::Usage, message).into());
        }
    }
    Ok(())
}

/// How many predictions are those of the reference.
fn compare(file: &Path, predictions: &[u8]) -> Result<usize, Failure> {
    let bad = |what: String| Error::new(ErrorKind::Io, format!("{}: {what}", file.display())).in_file(file);
    let json: Value = serde_json::from_slice(&read(file)?).map_err(|error| bad(error.to_string()))?;
    let expected = json["predictions"].as_str().ok_or_else(|| bad("no field `predictions`".into()))?;
    if expected.len() != predictions.len() {
        return Err(bad(format!("{} predictions for {} images", expected.len(), predictions.len())).into());
    }
    Ok(expected.bytes().zip(predictions).filter(|(digit, prediction)| digit - b'0' == **prediction).count())
}

struct Report<'a> {
    device: &'a Device,
    bytes: u64,
    timelines: usize,
    loaded: f64,
    seconds: f64,
    total: usize,
    correct: usize,
    matching: Option<usize>,
}

impl Report<'_> {
    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let percent = self.correct as f64 * 100.0 / self.total.max(1) as f64;
        if out.json() {
            return out.value(json!({
                "device": device_json(self.device), "bytes": self.bytes, "timelines": self.timelines,
                "load_seconds": self.loaded, "seconds": self.seconds, "images": self.total, "correct": self.correct,
                "matching": self.matching,
            }));
        }
        out.line(&format!("device     {} ({})", self.device.id(), crate::out::safe(&self.device.name())))?;
        let loaded = out.size(self.bytes);
        out.line(&format!(
            "loaded     {loaded} over {} timelines in {:.1} ms",
            self.timelines,
            self.loaded * 1e3
        ))?;
        out.line(&format!(
            "computed   {} images, two layers, {:.1} ms in all",
            self.total,
            self.seconds * 1e3
        ))?;
        let correct = format!("{} correct ({percent:.1} %)", self.correct);
        match self.matching {
            Some(same) => {
                out.line(&format!("{same} of {} predictions match the reference; {correct}", self.total))
            }
            None => out.line(&format!("{} predictions; {correct}", self.total)),
        }
    }
}
