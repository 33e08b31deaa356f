import { Worker } from 'node:worker_threads'

/** Threads that take the processor from everyone else until they are disposed of. */
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
