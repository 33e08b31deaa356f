import { fileURLToPath } from 'node:url'

/**
 * Returns the path of a compiled program: `test/support/file/box.process.js`. Tests run from the sources, programs from
 * `build/`.
 */
export function builtProgram(path: string): string {
  return fileURLToPath(new URL(`../../build/${path}`, import.meta.url))
}
