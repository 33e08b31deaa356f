/**
 * Prepares a checkout: `node scripts/setup.mjs [TARGET ...]`, with targets such as `dist` and `servers`.
 *
 * `run`, `development`, `packing` and some other targets are sets of packages from npm. `dist`, `tools` and `package`
 * are built from the sources. `servers` installs the programs that `npm test` starts, and `more-servers` the programs
 * that longer test runs start. `interop` builds the programs in other languages that tests need, and the name of a
 * language builds the programs in that language.
 *
 * Skips targets that are present and current, and prints nothing if there is nothing to do. Uses only modules of Node,
 * because it runs before any package is installed.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build, targets } from './build.mjs'
import { root, SetupError } from './command.mjs'
import { installPackages, missingPackages } from './debian.mjs'
import { buildLanguages, languageNames, staleLanguages } from './interop.mjs'
import { getJavaServer, isJavaServerMissing, javaServers } from './java-servers.mjs'
import { withLock } from './lock-file.mjs'
import { areSetsMissing, installSets, isCheckoutUnlinked, linkCheckout, packageSets } from './packages.mjs'
import { missingFunctionCheck } from './postgresql.mjs'
import { moreServers, servers } from './servers.mjs'

const oldestNode = { major: 20, minor: 19 }

/**
 * Something that a checkout needs. `missing` returns its description if it is missing, without changing anything.
 * `provide` installs it, or throws a SetupError that says what to do by hand.
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

/**
 * @param {readonly string[]} sets
 * @returns {Step}
 */
function packages(sets) {
  return {
    missing: () => (areSetsMissing(sets) ? 'packages' : undefined),
    provide: () => installSets(sets),
  }
}

/**
 * The link from the installed packages to the checkout.
 * @type {Step}
 */
const checkoutLink = {
  missing: () => (isCheckoutUnlinked() ? 'the link to the checkout' : undefined),
  provide: linkCheckout,
}

/**
 * @param {ReadonlyMap<string, string>} programs programs with their Debian packages
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
 * @param {string} name name of a server in Java
 * @returns {Step}
 */
function javaServer(name) {
  return {
    missing: () => (isJavaServerMissing(name) ? `the server ${name} for the tests` : undefined),
    provide: () => getJavaServer(name),
  }
}

/**
 * The extension that checks functions of PostgreSQL.
 * @type {Step}
 */
const functionCheck = {
  missing: missingFunctionCheck,
  provide: () => installPackages([missingFunctionCheck()].filter(name => name !== undefined)),
}

/**
 * An older server, which only long test runs start.
 * @type {Step}
 */
const debianZooKeeper = {
  missing: () =>
    existsSync('/usr/share/java/zookeeper.jar') ? undefined : "Debian's ZooKeeper for the tests",
  provide: () => installPackages(['libzookeeper-java', 'libslf4j-java']),
}

/**
 * @param {...string} names names of languages
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
  ['more-servers', [installed(moreServers), functionCheck]],
  ['debian-zookeeper', [debianZooKeeper]],
  ['interop', [interop('python', 'go', 'java', 'runtimes', 'orms', 'queues', 'nestjs')]],
  ...languageNames.map(name => /** @type {[string, Step[]]} */ ([name, [interop(name)]])),
])

/** @param {() => void} work */
function alone(work) {
  withLock(join(root, '.setup.lock'), work)
}

const wanted = process.argv.slice(2)
const known = [...packageSets, ...targets, ...named.keys()]
const unknown = wanted.find(name => !known.includes(name))

try {
  if (unknown !== undefined)
    throw new SetupError(`setup: unknown target '${unknown}'; there are ${known.join(', ')}.`)
  checkNodeVersion()
  const sets = wanted.filter(name => packageSets.includes(name))
  const steps = [packages(sets), checkoutLink, ...wanted.flatMap(name => named.get(name) ?? [])]
  for (const step of steps) {
    if (step.missing() === undefined) continue
    alone(() => {
      // Another setup may have provided it in the meantime.
      const missing = step.missing()
      if (missing === undefined) return
      process.stderr.write(`setup: preparing ${missing} ...\n`)
      step.provide()
    })
  }
  const sources = wanted.filter(name => targets.includes(name))
  if (sources.length > 0) alone(() => build(sources))
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
