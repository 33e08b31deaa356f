import { access } from 'node:fs/promises'
import { Option } from 'commander'
import { type Box, open } from '../index.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { withoutSecrets } from '../secrets.js'

/** The option by which every subcommand is told where the locks are. */
export function engineOption(): Option {
  return new Option('--engine <url>', 'where the locks are, such as file:./locks').env('SIGNALBOX_URL')
}

/** How a box is opened for a command. */
interface Use {
  /** Whether a missing folder is created. For a command that only looks it is an error, because it is mistyped then. */
  readonly makes?: boolean
  /** What others see beside what this command holds. */
  readonly label?: string
}

/**
 * Calls `task` with a box on the engine that was named, and closes it.
 * @param url what `--engine` or the environment says, if anything.
 * @throws CommandError when no other process can have anything there; what `open` and the task throw.
 */
export async function withBox<T>(
  url: string | undefined,
  task: (box: Box) => Promise<T>,
  { makes = false, label = 'signalbox command' }: Use = {},
): Promise<T> {
  await using box = await open(await placeOf(url, makes), { label })
  return await task(box)
}

/**
 * The URL that was named.
 * @param makes see {@link Use}.
 * @throws CommandError when there is none, or no other process can have anything there.
 */
export async function placeOf(url: string | undefined, makes: boolean): Promise<string> {
  if (url === undefined || url === '') {
    throw new CommandError('say where the locks are: --engine URL, or SIGNALBOX_URL', EXIT.usage)
  }
  if (url.startsWith('memory:')) {
    throw new CommandError(
      'the locks of memory: live inside one process, and no other one can see them',
      EXIT.usage,
    )
  }
  if (!makes && url.startsWith('file:')) await refuseToMakeOne(url)
  return url
}

/** Opening a folder makes it. */
async function refuseToMakeOne(url: string): Promise<void> {
  const { databaseOf } = await import('../engines/file/open.js')
  const database = databaseOf(url)
  try {
    await access(database)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? `nothing was ever locked there, there is no ${database}` : message
    throw new CommandError(`${withoutSecrets(url)} can't be looked at: ${reason}`, EXIT.failed)
  }
}
