import { InvalidArgumentError as Refusal } from 'commander'
import { milliseconds, type Duration } from '../base/duration.js'
import { checkKey } from '../base/options.js'

// Parsers of options and arguments. They throw commander's error, which names the option or argument.

export function duration(text: string): number {
  try {
    return milliseconds('It', text, { min: 0, max: Infinity })
  } catch {
    throw new Refusal('It must be a time with a unit, such as 250ms, 5s, 2m, 1h or 1d.')
  }
}

export function permitsOf(text: string): { permits: number; max: number } {
  const [, permits, max] = /^(\d{1,10})\/(\d{1,10})$/.exec(text) ?? []
  if (max === undefined) throw new Refusal('It must be a number of permits of a maximum, such as 1/4.')
  return { permits: Number(permits), max: Number(max) }
}

export function rateOf(text: string): { limit: number; per: Duration } {
  const [, limit, count, unit] = /^(\d{1,10})\/(\d+(?:\.\d+)?)?(ms|s|m|h|d)$/.exec(text) ?? []
  if (unit === undefined) throw new Refusal('It must be a rate such as 20/s or 500/15m.')
  return { limit: Number(limit), per: duration(`${count ?? 1}${unit}`) }
}

export function countOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Refusal('It must be a whole number from 1.')
  return Number(text)
}

export function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  if (!(port <= 65_535)) throw new Refusal('It must be a port from 1 to 65535, or 0 for a free one.')
  return port
}

export function hostOf(text: string): string {
  if (!/^[\w.:-]+$/.test(text))
    throw new Refusal('It must be an IP address or the name of this machine, such as 0.0.0.0.')
  return text
}

export function variableOf(text: string): string {
  if (!/^[A-Za-z_]\w*$/.test(text))
    throw new Refusal('It must be the name of an environment variable, such as TOKEN.')
  return text
}

/** A text is blank if a script's variable is unset. */
export function textOf(text: string): string {
  if (text.trim() === '') throw new Refusal('It must not be empty.')
  return text
}

export function versionOf(text: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : NaN
  if (!Number.isSafeInteger(number))
    throw new Refusal('It must be a version as get shows it, or 0 for a new key.')
  return number
}

export function keyOf(text: string): string {
  try {
    checkKey('It', text)
  } catch {
    throw new Refusal('It must be a text of 1 to 1024 characters.')
  }
  return text
}

export function keysOf(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, keyOf(text)]
}
