import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { until } from './time.js'

const built = new URL('../../build/test/contract/', import.meta.url)

/** A process of its own that runs one of the programs beside this file. */
export interface Child {
  /** Waits until it has printed a line. */
  printed(line: string): Promise<void>
  /** Waits for its end: its exit status, and all that it printed. */
  end(): Promise<{ status: number | null; stdout: string; stderr: string }>
  kill(signal: NodeJS.Signals): void
}

/** Starts a program by the name of its file, without `.process.ts`. It is killed with the test that started it. */
export function startChild(program: string, ...argv: string[]): Child {
  const path = fileURLToPath(new URL(`${program}.process.js`, built))
  const child = spawn(process.execPath, [path, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  let status: number | null | undefined
  child.on('close', code => (status = code))
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    kill: signal => void child.kill(signal),
    async printed(line) {
      await until(`the ${program} prints ${line}`, () => {
        if (status !== undefined) throw new Error(`the ${program} ended early: ${output.stderr}`)
        return output.stdout.split('\n').includes(line)
      })
    },
    async end() {
      await until(`the ${program} ends`, () => status !== undefined)
      return { status: status!, ...output }
    },
  }
}
