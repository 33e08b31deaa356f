import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const manifest = require.resolve('signalbox/package.json')

/** Returns the path of a file of this package, independent of the folder in which this module was built. */
export function packageFile(path: string): string {
  return join(dirname(manifest), path)
}

/** Packages that are not installed in this one: the file that contains the version, and its place in the file. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, place: RegExp]>> = {
  Redisson: ['java/pom.xml', /<artifactId>redisson<\/artifactId>\s*<version>(.+)<\/version>/],
  Curator: ['java/pom.xml', /<artifactId>curator-recipes<\/artifactId>\s*<version>(.+)<\/version>/],
  kazoo: ['python/requirements.txt', /^kazoo==(.+)$/m],
  zookeeper: ['native/package.json', /"zookeeper": "(.+)"/],
}

/** Returns the version of this package or of one that it is compared with. */
export function versionOf(name: string): string {
  const elsewhere = ELSEWHERE[name]
  if (elsewhere) {
    const [file, place] = elsewhere
    const version = place.exec(readFileSync(packageFile(`test/interop/${file}`), 'utf8'))?.[1]
    if (version === undefined) throw new Error(`${file} does not say the version of ${name}`)
    return version
  }
  const path = name === 'signalbox' ? manifest : packageFile(`node_modules/${name}/package.json`)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
