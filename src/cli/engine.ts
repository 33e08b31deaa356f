import { access } from 'node:fs/promises'
import { Option } from 'commander'
import { type Box, open } from '../index.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { withoutSecrets } from '../base/secrets.js'

/** The option for the URL of the engine, which every subcommand has. */
export function engineOption(): Option {
  return new Option('--engine <url>', 'where the locks are, such as file:./locks').env('SIGNALBOX_URL')
}

export interface EngineOptions {
  engine?: string
  json?: boolean
}

interface Use {
  /** Whether to create a missing folder. A command that only reads rejects it: its path is probably a typo. */
  readonly creates?: boolean
  /** The label that others see next to the locks of this command. */
  readonly label?: string
}

/**
 * Calls `task` with a box on the given engine, and closes the box.
 * @param url the value of `--engine` or of the environment variable, if any.
 * @throws CommandError if processes can't share the engine; the errors of `open` and the task.
 */
export async function withBox<T>(
  url: string | undefined,
  task: (box: Box) => Promise<T>,
  { creates = false, label = 'signalbox command' }: Use = {},
): Promise<T> {
  await using box = await open(await placeOf(url, creates), { label })
  return await task(box)
}

/** @throws CommandError if there is no URL, or if processes can't share the engine. */
export async function placeOf(url: string | undefined, creates: boolean): Promise<string> {
  if (url === undefined || url === '') {
    throw new CommandError('missing engine: pass --engine URL or set SIGNALBOX_URL', EXIT.usage)
  }
  if (url.startsWith('memory:')) {
    throw new CommandError(
      "memory: can't be used here: its locks are visible inside one process only",
      EXIT.usage,
    )
  }
  if (!creates && url.startsWith('file:')) await refuseToCreate(url)
  return url
}

/** Fails if the database is missing, because opening a box would create it. */
async function refuseToCreate(url: string): Promise<void> {
  const { databaseOf } = await import('../engines/file/open.js')
  const database = databaseOf(url)
  try {
    await access(database)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason =
      code === 'ENOENT' ? `${database} does not exist, so nothing was ever locked there` : message
    throw new CommandError(`can't read ${withoutSecrets(url)}: ${reason}`, EXIT.failed)
  }
}
