import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const manifest = require.resolve('signalbox/package.json')

/** A file of this package, wherever this module was built to. */
export function packageFile(path: string): string {
  return join(dirname(manifest), path)
}

/** The version of this package or of one that is installed beside it. */
export function versionOf(name: string): string {
  const path = name === 'signalbox' ? manifest : packageFile(`node_modules/${name}/package.json`)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
