import { lock } from '../../src/lockfile/index.js'
import { answerWith } from './lockfile-rounds.js'

await answerWith(lock)
