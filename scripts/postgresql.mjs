/** Where Debian puts the programs of PostgreSQL: outside of the PATH, one folder a version. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const versions = '/usr/lib/postgresql'

/** @returns {string[]} the folders of the installed versions, the newest first */
export function postgresqlFolders() {
  if (!existsSync(versions)) return []
  return readdirSync(versions)
    .sort((one, other) => Number(other) - Number(one))
    .map(version => join(versions, version, 'bin'))
}
