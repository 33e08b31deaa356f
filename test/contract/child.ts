import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { startChild as start, type Child } from '../../src/conformance/child.js'

const built = new URL('../../build/', import.meta.url)

/** Starts a program by the path of its source, without `.process.ts`. It is killed with the test that started it. */
export function startChild(program: string, ...argv: string[]): Child {
  const child = start(fileURLToPath(new URL(`${program}.process.js`, built)), argv)
  onTestFinished(() => child.kill('SIGKILL'))
  return child
}
