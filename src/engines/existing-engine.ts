import { InvalidArgumentError, shown } from '../base/errors.js'
import type { Engine } from '../engine/contract.js'
import { checkOptions } from '../base/options.js'

/** A custom engine for `open`. */
export interface ExistingEngine {
  /** Must not have joined yet: each box needs an engine of its own. */
  readonly engine: Engine
}

/** The methods that `open` calls. An engine may have more. */
const METHODS = ['join', 'submit', 'leave'] as const

/**
 * Returns the given engine.
 * @throws InvalidArgumentError if it lacks a property or method that every engine has
 */
export function existingEngine(source: { readonly engine: unknown }): Engine {
  checkOptions(source, ['engine'])
  const { engine } = source
  if (typeof engine !== 'object' || engine === null || Array.isArray(engine)) throw unfit(shown(engine))
  const parts = engine as Partial<Record<keyof Engine, unknown>>
  if (typeof parts.name !== 'string') throw unfit(`one whose name is ${shown(parts.name)}`)
  const { guarantees } = parts
  if (typeof guarantees !== 'object' || guarantees === null)
    throw unfit(`one whose guarantees are ${shown(guarantees)}`)
  for (const method of METHODS)
    if (typeof parts[method] !== 'function') throw unfit(`one whose ${method} is ${shown(parts[method])}`)
  return engine as Engine
}

function unfit(found: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `engine must be an object with name, guarantees, join, submit and leave, not ${found}`,
  )
}
