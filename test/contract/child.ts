import { fileURLToPath } from 'node:url'
import { startChild as start, type Child } from '../../packages/conformance/src/child.js'

const root = new URL('../../', import.meta.url)

/** Starts a program by its path in the checkout, without `.process.js`. The caller has to dispose of it. */
export function startChild(program: string, ...argv: string[]): Child {
  return start(fileURLToPath(new URL(`${program}.process.js`, root)), argv)
}
