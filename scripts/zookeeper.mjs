/** The ZooKeeper server that tests start: what of Maven Central it is made of, and where that lies. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installPackages, missingPackages } from './debian.mjs'
import { SetupError } from './setup-error.mjs'
import { root } from './targets.mjs'

const folder = join(root, '.interop/zookeeper')
const source = join(root, 'test/servers/zookeeper')
const stamp = join(folder, '.built')

/** @type {ReadonlyMap<string, string>} */
const programs = new Map([
  ['java', 'default-jre-headless'],
  ['mvn', 'maven'],
])

/** Whether the server is not there as its pom.xml says now. */
export function isZooKeeperMissing() {
  return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted()
}

/**
 * Gets the server's jars.
 * @throws {SetupError} when something is missing that can't be installed here, or they can't be had
 */
export function getZooKeeper() {
  const missing = missingPackages(programs)
  if (missing.length > 0) installPackages(missing)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const argv = [
    '-q',
    '-B',
    'dependency:copy-dependencies',
    `-DoutputDirectory=${folder}`,
    '-DincludeScope=runtime',
  ]
  const { status, error } = spawnSync('mvn', argv, { cwd: source, stdio: ['ignore', 2, 2] })
  if (error !== undefined) throw new SetupError(`mvn could not start: ${error.message}`)
  if (status !== 0) throw new SetupError(`mvn ${argv.join(' ')} failed; the lines above say why.`)
  writeFileSync(stamp, wanted())
}

function wanted() {
  return readFileSync(join(source, 'pom.xml'), 'utf8')
}
