import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { startChild as start, type Child } from '../../src/conformance/child.js'

const root = new URL('../../', import.meta.url)

/** Starts a program by its path in the checkout, without `.process.js`. It is killed with the test that started it. */
export function startChild(program: string, ...argv: string[]): Child {
  const child = start(fileURLToPath(new URL(`${program}.process.js`, root)), argv)
  onTestFinished(() => child.kill('SIGKILL'))
  return child
}
