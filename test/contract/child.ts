import { fileURLToPath } from 'node:url'
import { startChild as start, type Child } from '../../packages/conformance/src/child.js'

const root = new URL('../../', import.meta.url)

/** Starts a program. The caller must dispose of it. @param program its path in the checkout, without `.process.js` */
export function startChild(program: string, ...argv: string[]): Child {
  return start(fileURLToPath(new URL(`${program}.process.js`, root)), argv)
}
