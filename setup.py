from pathlib import Path

from setuptools import find_packages, setup

# Both are fairseq with fixes for Python 3.11, and install the package fairseq. fairseq.txt has their hashes.
# ve-fairseq has wheels for Python 3.11 and 3.12 on x86-64 Linux. fairseq-fixed is built from its source, which needs a
# C++ compiler. Neither can be imported on Python 3.14.
WHEEL = "ve-fairseq==0.12.3; python_version < '3.13' and sys_platform == 'linux' and platform_machine == 'x86_64'"
SOURCE = (
    "fairseq-fixed==0.12.3.1; python_version < '3.14' and "
    "(python_version >= '3.13' or sys_platform != 'linux' or platform_machine != 'x86_64')"
)
# torch 2.15 needs CUDA 13.2, and the newest torchaudio, which fairseq requires and transformers imports, needs 13.0
TORCH = [
    "torch>=2.6,<2.15; python_version < '3.14' and sys_platform == 'linux'",
    "torch>=2.6; python_version >= '3.14' or sys_platform != 'linux'",
]
ZSTD = "backports.zstd>=1; python_version < '3.14'"  # from 3.14 on, it is in the standard library
DOCS = [
    "mkdocs>=1.6,<2",
    "mkdocs-material>=9.6,<10",
    "mkdocstrings[python]>=0.29",
    "pymdown-extensions>=10.14",
    "ruff>=0.9",  # formats the signatures
]
TRANSFORMERS = ["accelerate>=1.3", "protobuf>=4.21", "transformers>=4.48"]

setup(
    name="tn_fairseq",
    version="0.4.0",
    description="Language model pre-training on true negatives: a fairseq plugin for ELECTRA and BERT",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    project_urls={"Paper": "https://arxiv.org/abs/2212.00460"},
    keywords="fairseq masked-language-model electra bert pre-training synonyms wordnet",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=["tn_fairseq", "tn_fairseq.*"]),
    package_data={
        "tn_fairseq": ["py.typed"],
        "tn_fairseq.tools.look": ["case_page.html"],
        "tn_fairseq.tools.results": ["page.html.jinja"],
    },
    entry_points={"console_scripts": ["tn-fairseq = tn_fairseq.__main__:main"]},
    install_requires=[
        WHEEL,  # only where fairseq need not be built, because objectives and tables also work without it
        "fsspec>=2024.5",
        "hanta>=1.2",
        "jinja2>=3.1",
        "lemminflect>=0.2.3",
        "matplotlib>=3.7",
        "nltk>=3.9",
        "numpy>=1.26",
        "omegaconf>=2.3",
        "pandas>=2.2",
        "pyarrow>=15",
        "pydantic>=2.7",
        "safetensors>=0.4.3",
        "scikit-learn>=1.3",
        "scipy>=1.11",
        "sentencepiece>=0.2.0",
        "tokenizers>=0.20",
        "tqdm>=4.64",
        *TORCH,
    ],
    extras_require={
        "dask": ["dask>=2024.5", "distributed>=2024.5"],
        "docs": DOCS,
        "fairseq": [WHEEL, SOURCE],
        "hub": ["datasets>=3"],
        "hf": TRANSFORMERS,
        "sentences": ["sentencex>=1.0.24"],
        "tensorboard": ["tensorboardX>=2.6"],
        "transformers": TRANSFORMERS,
        "zstd": [ZSTD],
        "test": [
            ZSTD,
            "dask-jobqueue>=0.9",
            "distributed>=2024.5",
            "hypothesis>=6.100",
            "import-linter>=2.5",
            "mypy>=1.15",
            "nbformat>=5.10",
            "peft>=0.14",
            "pytest>=8,<9.2",  # pytest-xdist 3.8 cannot group tests with pytest 9.2
            "pytest-instafail>=0.5",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.5",
            "sentencex>=1.0.24",
            "tensorboardX>=2.6",
            *DOCS,
            *TRANSFORMERS,
        ],
    },
)
