import { InvalidArgumentError, shown } from '../../base/errors.js'

/**
 * The parameters in the query of an engine's URL, each named once.
 * @throws InvalidArgumentError when one is named twice, because the library would have to guess which one is meant.
 */
export function urlParameters(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (parameters.has(name)) throw new InvalidArgumentError(`the URL has the option ${shown(name)} twice`)
    parameters.set(name, value)
  }
  return parameters
}

/** Decodes a part of an engine's URL. @throws InvalidArgumentError that names `what`, and never contains the text */
export function percentDecoded(what: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new InvalidArgumentError(`${what} must be percent-encoded`)
  }
}
