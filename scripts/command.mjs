/** Starts commands for setup, and reports their failures. */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Path of the checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** An error that only the user can fix. Setup prints its message alone. */
export class SetupError extends Error {}

/**
 * Runs a command to its end. Its output goes to standard error, because standard output belongs to the command that
 * setup prepares, for example to `npm start -- --json -`.
 * @param {string} command
 * @param {readonly string[]} argv
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} options
 * @throws {SetupError} if the command does not start or fails
 */
export function run(command, argv, { cwd = root, env = process.env } = {}) {
  const { status, error } = spawnSync(command, argv, { cwd, env, stdio: ['ignore', 2, 2] })
  if (error !== undefined) throw new SetupError(`${command} could not start: ${error.message}`)
  if (status !== 0) throw new SetupError(`${[command, ...argv].join(' ')} failed; the lines above say why.`)
}

/**
 * Runs npm: the one that runs this script, if there is one.
 * @param {...string} argv
 * @throws {SetupError} if npm does not start or fails
 */
export function npm(...argv) {
  const program = process.env.npm_execpath
  const all = [...argv, '--no-audit', '--no-fund', '--loglevel=error']
  if (program?.endsWith('npm-cli.js')) run(process.execPath, [program, ...all])
  else run('npm', all)
}
