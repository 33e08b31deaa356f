/** Where Debian puts PostgreSQL: programs outside of the PATH, one folder a version, and extensions elsewhere. */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const versions = '/usr/lib/postgresql'

/** @returns {string[]} the folders of the installed versions, the newest first */
export function postgresqlFolders() {
  if (!existsSync(versions)) return []
  return readdirSync(versions)
    .sort((one, other) => Number(other) - Number(one))
    .map(version => join(versions, version, 'bin'))
}

/**
 * The Debian package of plpgsql_check for the server that tests start, which checks functions.
 * @returns {string | undefined} nothing when it is installed, or the server is not Debian's
 */
export function missingFunctionCheck() {
  const [programs] = postgresqlFolders()
  if (programs === undefined) return undefined
  const version = basename(dirname(programs))
  if (existsSync(`/usr/share/postgresql/${version}/extension/plpgsql_check.control`)) return undefined
  return `postgresql-${version}-plpgsql-check`
}
