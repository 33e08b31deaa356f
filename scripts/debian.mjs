/** Installs the programs that tests need, from Debian's packages. */
import { accessSync, constants, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run, SetupError } from './command.mjs'
import { postgresqlFolders } from './postgresql.mjs'

/**
 * @param {ReadonlyMap<string, string>} packageOf the Debian packages of each program
 * @returns {string[]} the packages whose program is neither on the PATH nor in Debian's folders for servers
 */
export function missingPackages(packageOf) {
  return [...packageOf].filter(([program]) => !isInstalled(program)).flatMap(([, names]) => names.split(' '))
}

/**
 * Installs Debian packages without starting their services.
 * @param {readonly string[]} names
 * @throws {SetupError} if this process is not root on a system with apt, or if apt fails
 */
export function installPackages(names) {
  if (process.getuid?.() !== 0 || !isOnPath('apt-get'))
    throw new SetupError(
      `The tests need programs that are not installed here. As root: apt-get install ${names.join(' ')}`,
    )
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  withoutServices(() => {
    run('apt-get', ['update', '-q'], { env })
    run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...names], { env })
  })
}

/**
 * Does work with a policy that prevents Debian from starting services when it installs them.
 * @param {() => void} work
 */
function withoutServices(work) {
  const policy = '/usr/sbin/policy-rc.d'
  const isOurs = writeNew(policy, '#!/bin/sh\nexit 101\n')
  try {
    work()
  } finally {
    if (isOurs) rmSync(policy, { force: true })
  }
}

/**
 * @param {string} path
 * @param {string} content
 * @returns {boolean} whether this call created the file
 */
function writeNew(path, content) {
  try {
    writeFileSync(path, content, { flag: 'wx', mode: 0o755 })
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  }
}

/** @param {string} program */
function isInstalled(program) {
  return isOnPath(program) || isIn(['/usr/sbin', ...postgresqlFolders()], program)
}

/** @param {string} program */
function isOnPath(program) {
  return isIn((process.env.PATH ?? '').split(delimiter), program)
}

/**
 * @param {readonly string[]} folders
 * @param {string} program
 */
function isIn(folders, program) {
  return folders.some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
