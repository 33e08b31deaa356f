/** The servers in Java that tests start: what of Maven Central each is made of, and where that lies. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installPackages, missingPackages } from './debian.mjs'
import { SetupError } from './setup-error.mjs'
import { root } from './targets.mjs'

/** Those that `npm test` starts. Each has a pom.xml in its folder below `test/support/servers`. */
export const javaServers = ['zookeeper', 'hazelcast']

/** @type {ReadonlyMap<string, string>} */
const programs = new Map([
  ['java', 'default-jre-headless'],
  ['mvn', 'maven'],
])

/**
 * Whether the server is not there as its pom.xml says now.
 * @param {string} name
 */
export function isJavaServerMissing(name) {
  const stamp = stampOf(name)
  return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted(name)
}

/**
 * Gets the server's jars.
 * @param {string} name
 * @throws {SetupError} when something is missing that can't be installed here, or they can't be had
 */
export function getJavaServer(name) {
  const missing = missingPackages(programs)
  if (missing.length > 0) installPackages(missing)
  const folder = folderOf(name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const argv = [
    '-q',
    '-B',
    'dependency:copy-dependencies',
    `-DoutputDirectory=${folder}`,
    '-DincludeScope=runtime',
  ]
  const { status, error } = spawnSync('mvn', argv, { cwd: sourceOf(name), stdio: ['ignore', 2, 2] })
  if (error !== undefined) throw new SetupError(`mvn could not start: ${error.message}`)
  if (status !== 0) throw new SetupError(`mvn ${argv.join(' ')} failed; the lines above say why.`)
  writeFileSync(stampOf(name), wanted(name))
}

/** @param {string} name */
function folderOf(name) {
  return join(root, '.interop', name)
}

/** @param {string} name */
function sourceOf(name) {
  return join(root, 'test/support/servers', name)
}

/** @param {string} name */
function stampOf(name) {
  return join(folderOf(name), '.built')
}

/** @param {string} name */
function wanted(name) {
  return readFileSync(join(sourceOf(name), 'pom.xml'), 'utf8')
}
