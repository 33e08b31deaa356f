/** Installs the servers in Java that tests start, from Maven Central. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './command.mjs'
import { installPackages, missingPackages } from './debian.mjs'

/** The servers that `npm test` starts. Each has a pom.xml in its folder below `test/support/servers`. */
export const javaServers = ['zookeeper', 'hazelcast']

/** @type {ReadonlyMap<string, string>} */
const programs = new Map([
  ['java', 'default-jre-headless'],
  ['mvn', 'maven'],
])

/**
 * Whether the server is missing, or was installed for another pom.xml.
 * @param {string} name
 */
export function isJavaServerMissing(name) {
  const stamp = stampOf(name)
  return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted(name)
}

/**
 * Installs the jars of the server.
 * @param {string} name
 * @throws {SetupError} if a missing program can't be installed, or Maven fails
 */
export function getJavaServer(name) {
  const missing = missingPackages(programs)
  if (missing.length > 0) installPackages(missing)
  const folder = folderOf(name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  copyJars(sourceOf(name), folder)
  writeFileSync(stampOf(name), wanted(name))
}

/**
 * Copies the jars that a pom.xml names.
 * @param {string} project the folder with the pom.xml
 * @param {string} folder folder for the jars
 */
export function copyJars(project, folder) {
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${folder}`, '-DincludeScope=runtime']
  run('mvn', ['-q', '-B', ...goal], { cwd: project })
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
