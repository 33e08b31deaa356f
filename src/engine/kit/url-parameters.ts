import { InvalidArgumentError, shown } from '../../errors.js'

/**
 * The parameters in the query of an engine's URL, each named once.
 * @throws InvalidArgumentError when one is named twice: which of the two is meant would be a guess.
 */
export function urlParameters(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (parameters.has(name))
      throw new InvalidArgumentError(`an engine's URL names the option ${shown(name)} twice`)
    parameters.set(name, value)
  }
  return parameters
}
