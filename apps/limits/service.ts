import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Call } from './call.js'

/** A service that counts its calls, in its own process. */
export interface Service extends AsyncDisposable {
  readonly port: number
  /** Returns the calls that arrived at a path. */
  calls(path: string): Promise<readonly Call[]>
}

/** Starts a service on a free port of this machine. */
export async function startService(): Promise<Service> {
  const child = fork(fileURLToPath(new URL('./service.process.js', import.meta.url)))
  const [port] = (await once(child, 'message')) as [number]
  return {
    port,
    async calls(path) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      return (await response.json()) as Call[]
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
