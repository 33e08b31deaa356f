import { testBlocks } from '../docs/block-tests.js'
import { readAllBlocks, readme } from '../docs/pages.js'

testBlocks(readAllBlocks().filter(({ page }) => page === readme))
