import { Worker } from 'node:worker_threads'

/** Starts threads that keep the processor busy. Disposing of the result ends them. */
export function starve(threads: number): AsyncDisposable {
  const spinners = Array.from(
    { length: threads },
    () => new Worker(new URL('./spinner.thread.js', import.meta.url)),
  )
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(spinners.map(spinner => spinner.terminate()))
    },
  }
}
