import { access } from 'node:fs/promises'
import { Option } from 'commander'
import type { Box } from '../box.js'
import { open } from '../open.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

/** The option by which every subcommand is told where the locks are. */
export function engineOption(): Option {
  return new Option('--engine <url>', 'where the locks are, such as file:./locks').env('SIGNALBOX_URL')
}

/**
 * Calls `task` with a box on the engine that was named, and closes it.
 * @param url what `--engine` or the environment says, if anything.
 * @throws CommandError when no other process can have anything there; what `open` and the task throw.
 */
export async function withBox<T>(url: string | undefined, task: (box: Box) => Promise<T>): Promise<T> {
  if (url === undefined || url === '') {
    throw new CommandError('say where the locks are: --engine URL, or SIGNALBOX_URL', EXIT.usage)
  }
  if (url.startsWith('memory:')) {
    throw new CommandError(
      'the locks of memory: live inside one process, and no other one can see them',
      EXIT.usage,
    )
  }
  if (url.startsWith('file:')) await refuseToMakeOne(url)
  await using box = await open(url, { label: 'signalbox command' })
  return await task(box)
}

/** Opening a folder makes it; whoever wants to look has mistyped the path then. */
async function refuseToMakeOne(url: string): Promise<void> {
  const { databaseOf } = await import('../engines/file/open.js')
  const database = databaseOf(url)
  try {
    await access(database)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? `nothing was ever locked there, there is no ${database}` : message
    throw new CommandError(`${url} can't be looked at: ${reason}`, EXIT.failed)
  }
}
