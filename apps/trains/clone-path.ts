import { createRequire } from 'node:module'
import { dirname } from 'node:path'

/** The root folder of the clone: files that are not compiled, such as the page, are read from the source tree. */
export const clonePath = dirname(createRequire(import.meta.url).resolve('signalbox/package.json'))
