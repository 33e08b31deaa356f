import { Option, type Command } from 'commander'
import { duration, variableOf } from './arguments.js'
import { engineOption } from './engine.js'
import { withoutSecrets } from '../secrets.js'

/** What `run` and `lead` are told alike. */
export interface WorkFlags {
  engine?: string
  lease?: number
  fenceEnv: string
  grace: number
  json?: boolean
}

/** Adds the options that `run` and `lead` have alike. */
export function addWorkOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--lease <time>', 'how long the lock outlives silence (default: 30s)').argParser(duration),
    )
    .addOption(
      new Option('--fence-env <variable>', 'the variable in which the command finds the token')
        .argParser(variableOf)
        .default('SIGNALBOX_TOKEN'),
    )
    .addOption(
      new Option('--grace <time>', 'from SIGTERM to SIGKILL when the lock is lost')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .addOption(engineOption())
    .option('--json', 'tell on standard error what happens, in lines of JSON')
}

/**
 * Complains of a missing name: without one the parser takes the first word of the command for it.
 * @param words those of the command without what was taken for the name.
 */
export function refuseCommandAsName(command: Command, words: readonly string[]): void {
  const { rawArgs } = command.parent as Command & { rawArgs: readonly string[] }
  const dashes = rawArgs.indexOf('--')
  const behind = rawArgs.length - dashes - 1
  if (dashes >= 0 && behind > words.length) command.error("error: missing required argument 'name'")
}

const LONGEST_LABEL = 100

/** What others see beside the lock. Arguments may be secrets, so it is the name of the command alone. */
export function labelOf(command: readonly string[]): string {
  return `signalbox: ${withoutSecrets(command[0]!).slice(0, LONGEST_LABEL)}`
}
