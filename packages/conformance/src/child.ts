import { spawn } from 'node:child_process'
import { until } from './time.js'

/** Maximum wait for a line or for the end, in milliseconds. A process starts slowly on a busy machine. */
const MAX_WAIT = 40_000

/** A child process. Disposing kills it. */
export interface Child extends Disposable {
  readonly pid: number
  /** Waits until it has printed a line. */
  printed(line: string): Promise<void>
  /** Waits for its end, and returns its exit status and all its output. */
  end(): Promise<{ status: number | null; stdout: string; stderr: string }>
  kill(signal: NodeJS.Signals): void
}

/** Runs a JavaScript program in a child process. The caller has to kill or dispose of it. */
export function startChild(path: string, argv: readonly string[]): Child {
  const child = spawn(process.execPath, [path, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  let status: number | null | undefined
  child.on('close', code => (status = code))
  return {
    pid: child.pid!,
    kill: signal => void child.kill(signal),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
    async printed(line) {
      const isPrinted = (): boolean => {
        if (output.stdout.split('\n').includes(line)) return true
        if (status !== undefined) throw new Error(`${path} ended early: ${output.stdout}${output.stderr}`)
        return false
      }
      await until(`${path} prints ${line}`, isPrinted, MAX_WAIT)
    },
    async end() {
      await until(`${path} ends`, () => status !== undefined, MAX_WAIT)
      return { status: status!, ...output }
    },
  }
}
