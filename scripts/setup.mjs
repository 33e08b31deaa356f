/**
 * Makes a checkout ready: `node scripts/setup.mjs [TARGET ...]`, with targets such as `dist` and `servers`.
 *
 * Installs the packages that package-lock.json names, and builds the targets given as arguments. `servers` installs
 * the programs that `npm test` starts, `more-servers` those that larger test runs start. `interop` builds the programs
 * in other languages that tests need, and the name of a language those in this one. Each is done only when it is
 * missing or stale. Says nothing when there is nothing to do. Plain Node, because it runs before anything is installed.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, targets } from './build.mjs'
import { npm, root, SetupError } from './command.mjs'
import { installPackages, missingPackages } from './debian.mjs'
import { buildLanguages, languageNames, staleLanguages } from './interop.mjs'
import { getJavaServer, isJavaServerMissing, javaServers, moreJavaServers } from './java-servers.mjs'
import { withLock } from './lock-file.mjs'
import { moreServers, servers } from './servers.mjs'

const oldestNode = { major: 20, minor: 19 }

/**
 * One thing a checkout needs. `missing` looks without changing anything and says what is lacking, or
 * undefined; `provide` gets it, or throws a SetupError that tells the reader what to do by hand.
 * @typedef {{ missing: () => string | undefined, provide: () => void }} Step
 */

function checkNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > oldestNode.major || (major === oldestNode.major && minor >= oldestNode.minor)) return
  throw new SetupError(
    `Signalbox needs Node ${oldestNode.major}.${oldestNode.minor} or later; ` +
      `this is Node ${process.versions.node} (${process.execPath}).`,
  )
}

/** @type {Step} */
const packages = {
  missing() {
    const installed = lockedVersions('node_modules/.package-lock.json')
    if (installed === undefined) return 'packages'
    for (const [path, wanted] of lockedVersions('package-lock.json') ?? []) {
      // Binaries for other platforms are optional and rightly absent.
      if (path !== '' && !wanted.optional && installed.get(path)?.version !== wanted.version)
        return 'packages'
    }
    return undefined
  },
  provide() {
    // No package here needs its install script, and one of them would write into the home directory.
    npm('ci', '--include=dev', '--ignore-scripts')
  },
}

/**
 * @param {ReadonlyMap<string, string>} programs and the Debian package of each
 * @returns {Step}
 */
function installed(programs) {
  return {
    missing() {
      const missing = missingPackages(programs)
      return missing.length === 0 ? undefined : `${missing.join(', ')} for the tests`
    },
    provide: () => installPackages(missingPackages(programs)),
  }
}

/**
 * @param {string} name of a server in Java
 * @returns {Step}
 */
function javaServer(name) {
  return {
    missing: () => (isJavaServerMissing(name) ? `the server ${name} for the tests` : undefined),
    provide: () => getJavaServer(name),
  }
}

/**
 * An older server, for the long run.
 * @type {Step}
 */
const debianZooKeeper = {
  missing: () =>
    existsSync('/usr/share/java/zookeeper.jar') ? undefined : "Debian's ZooKeeper for the tests",
  provide: () => installPackages(['libzookeeper-java', 'libslf4j-java']),
}

/**
 * @param {...string} names of languages
 * @returns {Step}
 */
function interop(...names) {
  return {
    missing() {
      const stale = staleLanguages(names)
      return stale.length === 0 ? undefined : `programs in ${stale.join(', ')} for the tests`
    },
    provide: () => buildLanguages(names),
  }
}

/** @type {ReadonlyMap<string, Step[]>} */
const named = new Map([
  ['servers', [installed(servers), ...javaServers.map(javaServer)]],
  ['more-servers', [installed(moreServers), ...moreJavaServers.map(javaServer)]],
  ['debian-zookeeper', [debianZooKeeper]],
  ['interop', [interop('python', 'go', 'java', 'runtimes')]],
  ...languageNames.map(name => /** @type {[string, Step[]]} */ ([name, [interop(name)]])),
])

/**
 * @typedef {Record<string, { version?: string, optional?: boolean }>} LockedPackages
 * @param {string} file a lock file, relative to the checkout
 */
function lockedVersions(file) {
  const path = join(root, file)
  if (!existsSync(path)) return undefined
  const content = /** @type {{ packages: LockedPackages }} */ (JSON.parse(readFileSync(path, 'utf8')))
  return new Map(Object.entries(content.packages))
}

/** @param {() => void} work */
function alone(work) {
  withLock(join(root, '.setup.lock'), work)
}

const wanted = process.argv.slice(2)
const known = [...targets.keys(), ...named.keys()]
const unknown = wanted.find(name => !known.includes(name))

try {
  if (unknown !== undefined)
    throw new SetupError(`setup: unknown target '${unknown}'; there are ${known.join(', ')}.`)
  checkNodeVersion()
  const steps = [packages, ...wanted.flatMap(name => named.get(name) ?? [])]
  for (const step of steps) {
    if (step.missing() === undefined) continue
    alone(() => {
      // Another setup may have provided it while this one waited for its turn.
      const missing = step.missing()
      if (missing === undefined) return
      process.stderr.write(`setup: preparing ${missing} ...\n`)
      step.provide()
    })
  }
  const sources = wanted.filter(name => targets.has(name))
  if (sources.length > 0) alone(() => build(sources))
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
