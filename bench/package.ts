import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const manifest = require.resolve('signalbox/package.json')

/** A file of this package, wherever this module was built to. */
export function packageFile(path: string): string {
  return join(dirname(manifest), path)
}

/** What is not installed next to this package: the file that says which version of it is, and where there. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, place: RegExp]>> = {
  Redisson: ['java/pom.xml', /<artifactId>redisson<\/artifactId>\s*<version>(.+)<\/version>/],
  Curator: ['java/pom.xml', /<artifactId>curator-recipes<\/artifactId>\s*<version>(.+)<\/version>/],
  kazoo: ['python/requirements.txt', /^kazoo==(.+)$/m],
  zookeeper: ['native/package.json', /"zookeeper": "(.+)"/],
}

/** The version of this package or of something that it is measured against. */
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
