import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { sharedClock, systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { percentDecoded, urlParameters } from '../../engine/kit/url-parameters.js'
import { FileEngine, type FileOptions } from './file-engine.js'
import { DATABASE } from './folder.js'

/**
 * Returns the engine of a `file:` URL.
 * @throws InvalidArgumentError when the path or a parameter is invalid; UnavailableError when the runtime can't
 * read a clock that processes share.
 */
export function openFile(url: string): FileEngine {
  const place = options(url)
  // Throws before anything is created if the runtime can't read a shared clock.
  sharedClock.now()
  return new FileEngine(url, place, sharedClock, systemClock)
}

/**
 * Returns the path of the database of a `file:` URL, without creating it.
 * @throws InvalidArgumentError when the path or a parameter is invalid.
 */
export function databaseOf(url: string): string {
  return join(options(url).folder, DATABASE)
}

function options(url: string): FileOptions {
  const [path, query] = split(url)
  const parameters = urlParameters(query)
  checkOptions(Object.fromEntries(parameters), ['durable'])
  const durable = parameters.get('durable') ?? 'true'
  if (durable !== 'true' && durable !== 'false') {
    throw new InvalidArgumentError(`durable must be true or false, not ${shown(durable)}`)
  }
  return { folder: resolve(path), durable: durable === 'true' }
}

function split(url: string): [path: string, query: string] {
  const [encoded, query = ''] = url.slice('file:'.length).split('?', 2) as [string, string?]
  // `file:///folder` and `file:/folder` are the same place; `file:folder` is relative to the working directory.
  const path = percentDecoded('the path of a file: URL', encoded.replace(/^\/\/(?=\/)/, ''))
  if (path === '' || path.startsWith('//') || path.includes('\0')) {
    throw new InvalidArgumentError(
      `a file: URL must have the path of a folder on this machine, not ${shown(url)}`,
    )
  }
  return [withHome(path), query]
}

/**
 * Replaces `~` at the start of a path with the home folder, as a shell does. @throws InvalidArgumentError for `~user`
 */
function withHome(path: string): string {
  if (!path.startsWith('~')) return path
  if (path !== '~' && !path.startsWith('~/'))
    throw new InvalidArgumentError(
      `~ in a file: URL must be this user's home folder, not another user's as in ${shown(path)}; write ./${path} for a folder of that name`,
    )
  return join(homedir(), path.slice(1))
}
