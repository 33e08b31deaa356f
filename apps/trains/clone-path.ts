import { createRequire } from 'node:module'
import { dirname } from 'node:path'

/** The folder of the clone. What is no program is not compiled, and stays where its source is. */
export const clonePath = dirname(createRequire(import.meta.url).resolve('signalbox/package.json'))
