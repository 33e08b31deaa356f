/** Finds Debian's files of PostgreSQL. Its programs are not on the PATH: each version has a folder. */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const versions = '/usr/lib/postgresql'

/** @returns {string[]} the folders with the programs of the installed versions, newest first */
export function postgresqlFolders() {
  if (!existsSync(versions)) return []
  return readdirSync(versions)
    .sort((one, other) => Number(other) - Number(one))
    .map(version => join(versions, version, 'bin'))
}

/**
 * Returns the Debian package of plpgsql_check, which checks functions, for the server that tests start.
 * @returns {string | undefined} undefined if it is installed, or if the server is not Debian's
 */
export function missingFunctionCheck() {
  const [programs] = postgresqlFolders()
  if (programs === undefined) return undefined
  const version = basename(dirname(programs))
  if (existsSync(`/usr/share/postgresql/${version}/extension/plpgsql_check.control`)) return undefined
  return `postgresql-${version}-plpgsql-check`
}
