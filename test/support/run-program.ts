import { spawn } from 'node:child_process'

/** The output of a program. */
export interface Output {
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a program to its end, without input.
 *
 * @param timeLimit milliseconds; after that, the program is killed together with the processes that it started
 * @param environment variables in addition to those of this process
 * @throws Error with its output when it can't start, fails, or takes too long
 */
export function runProgram(
  command: string,
  argv: readonly string[],
  {
    cwd,
    timeLimit,
    environment = {},
  }: { cwd: string; timeLimit: number; environment?: Readonly<Record<string, string>> },
): Promise<Output> {
  return new Promise((resolve, reject) => {
    // A group of its own, so that a shell's children end with it.
    const env = { ...process.env, ...environment }
    const child = spawn(command, argv, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    let late = false
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
    const timer = setTimeout(() => {
      late = true
      process.kill(-child.pid!, 'SIGKILL')
    }, timeLimit)
    child.on('error', error => {
      clearTimeout(timer)
      reject(error)
    })
    child.on('close', (status, signal) => {
      clearTimeout(timer)
      if (status === 0) {
        resolve(output)
        return
      }
      const end = late
        ? `was killed after ${timeLimit} ms`
        : `ended with ${signal ?? `status ${String(status)}`}`
      reject(new Error(`${command} ${end}\n${output.stdout}\n${output.stderr}`))
    })
  })
}
