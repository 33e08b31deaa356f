/** Interval between two measurements, in milliseconds. */
const SAMPLE_INTERVAL = 1000

/**
 * Measures the peak of this process's resident memory, in bytes. Samples it, because the peak that the operating system
 * reports includes that of the parent process.
 * @returns a function that stops and returns the peak.
 */
export function measurePeakMemory(): () => number {
  let peak = 0
  const sample = (): void => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  const timer = setInterval(sample, SAMPLE_INTERVAL).unref()
  return () => {
    clearInterval(timer)
    sample()
    return peak
  }
}
