import { Box, type BoxOptions } from './box.js'
import { systemClock } from './clock.js'
import type { Engine } from './engines/engine.js'
import { InvalidArgumentError, shown } from './errors.js'

/**
 * Opens a box on the engine that the URL names:
 * - `memory:` for this box alone, `memory:name` shared by all boxes of the thread that name it;
 * - `file:./dir` for all processes of this machine that open the same folder. `?durable=false` lets commits return
 *   before they are on the disk.
 *
 * An engine's code is loaded only when a URL asks for it.
 * @throws InvalidArgumentError when the URL or an option is unfit; UnavailableError when the engine can't be reached or
 * a package that it needs is missing.
 */
export async function open(url: string, options?: BoxOptions): Promise<Box> {
  if (typeof url !== 'string')
    throw new InvalidArgumentError(`open takes a URL like 'memory:', not ${shown(url)}`)
  return Box.join(await engineFor(url), systemClock, options)
}

async function engineFor(url: string): Promise<Engine> {
  const scheme = /^([a-z][a-z0-9+-]*):/.exec(url)?.[1]
  switch (scheme) {
    case 'memory':
      return (await import('./engines/memory/open.js')).openMemory(url)
    case 'file':
      return (await import('./engines/file/open.js')).openFile(url)
    case 'redis':
    case 'rediss':
    case 'redis+unix':
    case 'redis+sentinel':
    case 'rediss+sentinel':
    case 'redis+cluster':
    case 'rediss+cluster':
      return (await import('./engines/redis/open.js')).openRedis(url)
    default:
      throw new InvalidArgumentError(`open takes a URL with memory:, file: or redis:, not ${shown(url)}`)
  }
}
