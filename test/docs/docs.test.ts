import { testBlocks } from './block-tests.js'
import { readAllBlocks, readme } from './pages.js'

// The blocks of README run in a smoke test.
testBlocks(readAllBlocks().filter(({ page }) => page !== readme))
