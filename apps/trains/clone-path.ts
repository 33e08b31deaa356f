import { createRequire } from 'node:module'
import { dirname } from 'node:path'

/** The root folder of the clone, which contains the bundled timetable and the built page. */
export const clonePath = dirname(createRequire(import.meta.url).resolve('signalbox/package.json'))
