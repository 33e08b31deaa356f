import { Option, type Command } from 'commander'
import { duration, variableOf } from './arguments.js'
import { engineOption } from './engine.js'
import { withoutSecrets } from '../base/secrets.js'

/** Options that `run` and `lead` share. */
export interface WorkFlags {
  engine?: string
  lease?: number
  fenceEnv: string
  grace: number
  json?: boolean
}

export function addWorkOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--lease <time>', 'how long the lock is held without a renewal (default: 30s)').argParser(
        duration,
      ),
    )
    .addOption(
      new Option('--fence-env <variable>', 'environment variable that passes the token to the command')
        .argParser(variableOf)
        .default('SIGNALBOX_TOKEN'),
    )
    .addOption(
      new Option('--grace <time>', 'time from SIGTERM to SIGKILL when the lock is lost')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .addOption(engineOption())
    .option('--json', 'report events on standard error, in lines of JSON')
}

/**
 * Rejects a missing name: without one, the parser takes the first word of the command as the name.
 * @param words the command without the word that was taken as the name.
 */
export function refuseCommandAsName(command: Command, words: readonly string[]): void {
  const { rawArgs } = command.parent as Command & { rawArgs: readonly string[] }
  const dashes = rawArgs.indexOf('--')
  const behind = rawArgs.length - dashes - 1
  if (dashes >= 0 && behind > words.length) command.error("error: missing required argument 'name'")
}

const MAX_LABEL_LENGTH = 100

/** The label that others see next to the lock: the name of the command without its arguments, which may be secrets. */
export function labelOf(command: readonly string[]): string {
  return `signalbox: ${withoutSecrets(command[0]!).slice(0, MAX_LABEL_LENGTH)}`
}
